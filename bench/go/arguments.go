package main

import (
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
)

// arguments are the job and its parameters.
type arguments struct {
	job        string
	kubeconfig string
	// object is the JSON file of the pod that is the template of all objects.
	object string
	count  int
	// size is the number of objects in the fleet.
	size        int
	concurrency int
	// since is the resource version after which a watch starts.
	since string
	// replay is the address of the replay server, for the jobs that use it.
	replay string
	// started is the start of this process, in nanoseconds of Unix time.
	started int64
}

func parse(words []string) (*arguments, error) {
	if len(words) == 0 {
		return nil, errors.New("no job is given")
	}
	parsed := &arguments{job: words[0]}
	flags := flag.NewFlagSet(words[0], flag.ContinueOnError)
	flags.StringVar(&parsed.kubeconfig, "kubeconfig", "", "")
	flags.StringVar(&parsed.object, "object", "", "")
	flags.IntVar(&parsed.count, "count", 1, "")
	flags.IntVar(&parsed.size, "size", 1, "")
	flags.IntVar(&parsed.concurrency, "concurrency", 1, "")
	flags.StringVar(&parsed.since, "since", "", "")
	flags.StringVar(&parsed.replay, "replay", "", "")
	flags.Int64Var(&parsed.started, "started", 0, "")
	attached := flags.String("attached", "", "")
	if err := flags.Parse(words[1:]); err != nil {
		return nil, err
	}
	if *attached != "" {
		go endWithParent()
	}
	return parsed, nil
}

// template returns the pod that is the template of all objects.
func (a *arguments) template() (*corev1.Pod, error) {
	text, err := os.ReadFile(a.object)
	if err != nil {
		return nil, err
	}
	template := &corev1.Pod{}
	return template, json.Unmarshal(text, template)
}

// pods returns the objects to create, in order.
func (a *arguments) pods() ([]*corev1.Pod, error) {
	template, err := a.template()
	if err != nil {
		return nil, err
	}
	template.Status = corev1.PodStatus{}
	objects := make([]*corev1.Pod, a.count)
	for number := range objects {
		objects[number] = template.DeepCopy()
		objects[number].Name = name(number)
	}
	return objects, nil
}

// endWithParent ends this process when its standard input closes: the process that started it holds the other end.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}
