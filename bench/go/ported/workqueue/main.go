// examples/ported/workqueue.rs, written with client-go: the guide shows both.
//
// Runs on the cluster of the current kubeconfig: a pod is created and deleted, and a pod whose processing fails is dropped
// after five retries.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

const maxRetries = 5

type keyQueue = workqueue.TypedRateLimitingInterface[cache.ObjectName]

// syncToStdout is the business logic: everything else is machinery.
func syncToStdout(lister corelisters.PodLister, key cache.ObjectName) error {
	pod, err := lister.Pods(key.Namespace).Get(key.Name)
	switch {
	case apierrors.IsNotFound(err):
		fmt.Printf("pod %s does not exist any more\n", key)
	case err != nil:
		return err
	case pod.Name == "broken":
		return errors.New("cannot process this pod")
	default:
		fmt.Printf("sync of pod %s\n", key)
	}
	return nil
}

func runWorker(queue keyQueue, lister corelisters.PodLister) {
	for {
		key, isShutDown := queue.Get()
		if isShutDown {
			return
		}
		process(queue, lister, key)
	}
}

func process(queue keyQueue, lister corelisters.PodLister, key cache.ObjectName) {
	defer queue.Done(key)
	err := syncToStdout(lister, key)
	if err != nil && queue.NumRequeues(key) < maxRetries {
		queue.AddRateLimited(key)
		return
	}
	if err != nil {
		fmt.Printf("dropping pod %s: %v\n", key, err)
	}
	queue.Forget(key)
}

func enqueue(queue keyQueue, object any) {
	if key, err := cache.DeletionHandlingObjectToName(object); err == nil {
		queue.Add(key)
	}
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
	ctx, stop := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace("default"))
	defer factory.Shutdown()
	defer stop()
	pods := factory.Core().V1().Pods()
	queue := workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
		workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "pods"},
	)
	registration, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { enqueue(queue, object) },
		UpdateFunc: func(_, object any) { enqueue(queue, object) },
		DeleteFunc: func(object any) { enqueue(queue, object) },
	})
	if err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		return errors.New("the cache did not sync")
	}
	var workers sync.WaitGroup
	workers.Go(func() { runWorker(queue, pods.Lister()) })
	err = exercise(ctx, clientset, pods.Lister())
	queue.ShutDown()
	workers.Wait()
	return err
}

// exercise creates and deletes the pods that the worker processes.
func exercise(ctx context.Context, clientset *kubernetes.Clientset, lister corelisters.PodLister) error {
	pods := clientset.CoreV1().Pods("default")
	for _, name := range []string{"web", "broken"} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
		}
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	if err := pods.Delete(ctx, "web", *metav1.NewDeleteOptions(0)); err != nil {
		return err
	}
	isDeleted := func(context.Context) (bool, error) {
		_, err := lister.Pods("default").Get("web")
		return apierrors.IsNotFound(err), nil
	}
	if err := wait.PollUntilContextTimeout(ctx, 10*time.Millisecond, 10*time.Second, true, isDeleted); err != nil {
		return err
	}
	// The failed key waits for its backoff: 5, 10, 20, 40 and 80 ms.
	time.Sleep(500 * time.Millisecond)
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
