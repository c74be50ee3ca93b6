// Package fixtures replaces the file of apiextensions-apiserver's integration tests that starts the server: here it is `klient serve`, in a
// process of its own for each test. `cargo xtask clients suites` builds the tests with it.
package fixtures

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	clientv3 "go.etcd.io/etcd/client/v3"

	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	serveroptions "k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	servertesting "k8s.io/apiextensions-apiserver/pkg/cmd/server/testing"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// StartDefaultServer starts a server. The options are nil, because they describe another server.
func StartDefaultServer(t servertesting.Logger, flags ...string) (func(), *rest.Config, *serveroptions.CustomResourceDefinitionsServerOptions, error) {
	for _, flag := range flags {
		// Clients cannot notice whether the server has a cache.
		if !strings.HasPrefix(flag, "--watch-cache=") {
			t.Fatalf("klient serve has no flag %s", flag)
		}
	}
	stop, config, err := start()
	return stop, config, nil, err
}

func start() (func(), *rest.Config, error) {
	folder, err := os.MkdirTemp("", "apiextensions")
	if err != nil {
		return nil, nil, err
	}
	kubeconfig := filepath.Join(folder, "kubeconfig")
	// The tests use namespaces that do not exist.
	command := exec.Command(os.Getenv("KLIENT"), "serve", "--bare", "--disable-admission-plugins", "NamespaceLifecycle", "--kubeconfig", kubeconfig)
	stop := func() {
		if command.Process != nil {
			command.Process.Kill()
			command.Wait()
		}
		os.RemoveAll(folder)
	}
	config, err := serve(command, kubeconfig)
	if err != nil {
		stop()
		return nil, nil, err
	}
	return stop, config, nil
}

func serve(command *exec.Cmd, kubeconfig string) (*rest.Config, error) {
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(output).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "serving on ") {
		return nil, fmt.Errorf("klient serve did not start: %q, %v", line, err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = 1000, 1000
	return config, nil
}

// StartDefaultServerWithClients starts a server and returns clients for it.
func StartDefaultServerWithClients(t servertesting.Logger, flags ...string) (func(), clientset.Interface, dynamic.Interface, error) {
	stop, config, _, err := StartDefaultServer(t, flags...)
	if err != nil {
		return nil, nil, nil, err
	}
	definitions, err := clientset.NewForConfig(config)
	if err != nil {
		stop()
		return nil, nil, nil, err
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		stop()
		return nil, nil, nil, err
	}
	return stop, definitions, objects, nil
}

// StartDefaultServerWithConfigAccess fails the test, which wants to change the server's own configuration.
func StartDefaultServerWithConfigAccess(t servertesting.Logger, flags ...string) (func(), *rest.Config, apiserver.CompletedConfig, error) {
	t.Fatalf("klient serve has no configuration of the real server")
	return nil, nil, apiserver.CompletedConfig{}, nil
}

// StartDefaultServerWithClientsAndEtcd fails the test, which wants to read and write etcd.
func StartDefaultServerWithClientsAndEtcd(t servertesting.Logger, flags ...string) (func(), clientset.Interface, dynamic.Interface, *clientv3.Client, string, error) {
	t.Fatalf("klient serve has no etcd")
	return nil, nil, nil, nil, "", nil
}

// IntegrationEtcdServers returns no addresses.
func IntegrationEtcdServers() []string {
	return nil
}
