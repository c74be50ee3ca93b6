// The real kubectl, built from its Go module for end-to-end tests and for people who look into their servers.
package main

import (
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

func main() { util.CheckErr(cli.RunNoErrOutput(cmd.NewDefaultKubectlCommand())) }
