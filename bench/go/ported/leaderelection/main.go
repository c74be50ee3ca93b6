// examples/ported/leader_election.rs, written with client-go: the guide shows both.
//
// Runs on the cluster of the current kubeconfig: two candidates; the first one steps down, and the second one takes over.
package main

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

func candidate(
	clientset *kubernetes.Clientset, identity string, callbacks leaderelection.LeaderCallbacks,
) (*leaderelection.LeaderElector, error) {
	return leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "example"},
			Client:     clientset.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: identity},
		},
		LeaseDuration:   60 * time.Second,
		RenewDeadline:   15 * time.Second,
		RetryPeriod:     200 * time.Millisecond,
		ReleaseOnCancel: true,
		Callbacks:       callbacks,
	})
}

func run(ctx context.Context) error {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if err != nil {
		return err
	}
	clientset, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	firstCtx, stopFirst := context.WithCancel(ctx)
	defer stopFirst()
	secondCtx, stopSecond := context.WithCancel(ctx)
	defer stopSecond()
	firstLeads, seenSecond := make(chan struct{}), make(chan struct{})

	first, err := candidate(clientset, "first", leaderelection.LeaderCallbacks{
		OnStartedLeading: func(ctx context.Context) {
			fmt.Println("first leads")
			close(firstLeads)
			<-ctx.Done()
		},
		OnStoppedLeading: func() {},
	})
	if err != nil {
		return err
	}
	second, err := candidate(clientset, "second", leaderelection.LeaderCallbacks{
		OnStartedLeading: func(context.Context) {
			fmt.Println("second leads")
			<-seenSecond
			stopSecond()
		},
		OnStoppedLeading: func() {},
		// Everyone can see who leads.
		OnNewLeader: func(identity string) {
			fmt.Println("leader:", identity)
			switch identity {
			case "first":
				stopFirst()
			case "second":
				close(seenSecond)
			}
		},
	})
	if err != nil {
		return err
	}

	var candidates sync.WaitGroup
	candidates.Go(func() { first.Run(firstCtx) })
	<-firstLeads
	candidates.Go(func() { second.Run(secondCtx) })
	candidates.Wait()
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
