// The jobs of the benchmark, with client-go.
//
// bench/jobs does the same for the Rust programs; xtask/src/bench/ parses the output of all programs.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typed "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	library = "client-go"
	// fleet is the namespace of the objects that are read.
	fleet = "fleet"
	// made is the namespace in which objects are created and deleted.
	made = "made"
	// warmUp is the number of requests before the measurement, which open the connections.
	warmUp = 20
	// fieldManager is the field manager, set because libraries would choose different names.
	fieldManager = "bench"
)

type job func(context.Context, *arguments, *kubernetes.Clientset) (measured, *answer, error)

var jobs = map[string]job{
	"get":          get,
	"list":         list,
	"list-managed": list,
	"create":       create,
	"patch":        patch,
	"watch-keys":   watchKeys,
	"watch-typed":  watchTyped,

	"sync":            syncInformer,
	"sync-list":       syncInformer,
	"sync-watch-list": syncInformer,
	"sync-decoded":    syncInformer,
	"informer-events": informerEvents,
	"cold":            cold,
	"controller":      controller,
	"expire":          expire,
	"events":          replayKeys,
	"events-typed":    replayTyped,
	"index":           index,
}

// dynamics are the jobs with kinds known only at run time.
var dynamics = map[string]func(context.Context, *rest.Config) (measured, *answer, error){
	"sync-custom": syncCustom,
}

// serverless are the jobs that send no requests.
var serverless = map[string]func(*arguments) (measured, *answer, error){
	"queue":         queueSteady,
	"queue-delayed": queueDelayed,
	"queue-burst":   queueBurst,

	"read-key":          readKey,
	"read-typed":        readKey,
	"read-key-writes":   readKeyWrites,
	"read-index":        readIndex,
	"read-index-writes": readIndexWrites,
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	arguments, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	if work, found := serverless[arguments.job]; found {
		measured, answer, err := work(arguments)
		if err != nil {
			return err
		}
		return report(arguments, measured, answer)
	}
	switch arguments.job {
	case "informer-events", "sync-list":
		// The first read must be a list and not a watch. The variable is read once, early.
		os.Setenv("KUBE_FEATURE_WatchListClient", "false")
	case "sync-watch-list":
		os.Setenv("KUBE_FEATURE_WatchListClient", "true")
	}
	config, err := clientcmd.BuildConfigFromFlags("", arguments.kubeconfig)
	if err != nil {
		return err
	}
	// The other libraries have no client-side limit.
	config.QPS = -1
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if work, found := streams[arguments.job]; found {
		measured, answer, err := work(ctx, arguments, config, clientset)
		if err != nil {
			return err
		}
		return report(arguments, measured, answer)
	}
	if arguments.job != "cold" {
		if err := makeConnections(ctx, arguments, clientset); err != nil {
			return err
		}
	}
	if work, found := dynamics[arguments.job]; found {
		measured, answer, err := work(ctx, config)
		if err != nil {
			return err
		}
		return report(arguments, measured, answer)
	}
	work, found := jobs[arguments.job]
	if !found {
		return fmt.Errorf("no job %s", arguments.job)
	}
	measured, answer, err := work(ctx, arguments, clientset)
	if err != nil {
		return err
	}
	return report(arguments, measured, answer)
}

// makeConnections sends requests with the concurrency of the measurement, so that all connections are open.
func makeConnections(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) error {
	asked := make(chan error)
	for range arguments.concurrency {
		go func() {
			var err error
			for range warmUp {
				if err == nil {
					_, err = pods(clientset).Get(ctx, name(0), metav1.GetOptions{})
				}
			}
			asked <- err
		}()
	}
	var failed error
	for range arguments.concurrency {
		failed = errors.Join(failed, <-asked)
	}
	return failed
}

func pods(clientset *kubernetes.Clientset) typed.PodInterface {
	return clientset.CoreV1().Pods(fleet)
}

// name returns the name of an object by its number.
func name(number int) string {
	return fmt.Sprintf("web-%06d", number)
}
