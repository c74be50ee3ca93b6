package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// leaders runs two candidates, one after the other: the second leads after the first releases the lease.
func leaders(ctx context.Context, config *rest.Config, _ *owner) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	var before string
	for _, name := range []string{"first", "second"} {
		leading, stop := context.WithCancel(ctx)
		led := false
		lock := &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: "default", Name: "leader"},
			Client:     client.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: name},
		}
		leaderelection.RunOrDie(leading, leaderelection.LeaderElectionConfig{
			Lock:            lock,
			ReleaseOnCancel: true,
			LeaseDuration:   15 * time.Second,
			RenewDeadline:   10 * time.Second,
			RetryPeriod:     2 * time.Second,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(context.Context) {
					// A candidate that stops during a renewal may race with it, so it stops only after a renewal.
					led = eventually(ctx, "a renewal", func() bool { return renewed(ctx, client, name) }) == nil
					stop()
				},
				OnStoppedLeading: func() {},
			},
		})
		stop()
		lease, err := client.CoordinationV1().Leases("default").Get(ctx, "leader", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := expect(led && *lease.Spec.HolderIdentity == "", "a lease that was let go, not %+v", lease.Spec); err != nil {
			return err
		}
		if err := expect(lease.ResourceVersion != before, "another version than %s", before); err != nil {
			return err
		}
		before = lease.ResourceVersion
	}
	return nil
}

func renewed(ctx context.Context, client kubernetes.Interface, holder string) bool {
	lease, err := client.CoordinationV1().Leases("default").Get(ctx, "leader", metav1.GetOptions{})
	return err == nil && *lease.Spec.HolderIdentity == holder && lease.Spec.RenewTime.After(lease.Spec.AcquireTime.Time)
}
