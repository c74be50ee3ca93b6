package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// toldAt is the annotation with the time at which the replay server sent a change, in nanoseconds of Unix time.
const toldAt = "bench.klient.invalid/at"

// reconciles counts the reconciles of both phases: first all objects once, then the changed ones.
type reconciles struct {
	lock sync.Mutex
	left int
	// answer is nil before the first change.
	answer       *answer
	microseconds []float64
	ended        chan struct{}
}

func (r *reconciles) add(pod *corev1.Pod) {
	now := time.Now().UnixNano()
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.answer != nil {
		if told, err := strconv.ParseInt(pod.Annotations[toldAt], 10, 64); err == nil {
			r.microseconds = append(r.microseconds, float64(now-told)/1000)
		}
		r.answer.addPod(pod)
	}
	r.left--
	if r.left == 0 {
		r.ended <- struct{}{}
	}
}

func (r *reconciles) percentile(part float64) float64 {
	return r.microseconds[int(math.Round(float64(len(r.microseconds)-1)*part))]
}

// controller runs a whole controller: an informer, a queue that its handler fills, and workers that read the objects of their keys.
func controller(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	done := &reconciles{left: arguments.size, ended: make(chan struct{}, 1)}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace(fleet), informers.WithTransform(withoutManagedFields))
	pods := factory.Core().V1().Pods()
	enqueue := func(object any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: enqueue,
	})
	if err != nil {
		return measured{}, nil, err
	}
	factory.Start(ctx.Done())
	lister := pods.Lister()
	for range arguments.concurrency {
		go func() {
			for {
				key, over := queue.Get()
				if over {
					return
				}
				namespace, name, _ := cache.SplitMetaNamespaceKey(key)
				if pod, err := lister.Pods(namespace).Get(name); err == nil {
					done.add(pod)
				}
				queue.Forget(key)
				queue.Done(key)
			}
		}()
	}
	<-done.ended
	done.lock.Lock()
	done.left, done.answer = arguments.count, &answer{}
	done.lock.Unlock()
	mark := now()
	if err := replayChanges(arguments); err != nil {
		return measured{}, nil, err
	}
	<-done.ended
	measured := mark.measured()
	if len(done.microseconds) != arguments.count {
		return measured, nil, fmt.Errorf("%d of %d reconciles know when they began", len(done.microseconds), arguments.count)
	}
	slices.Sort(done.microseconds)
	measured.p50, measured.p99 = done.percentile(0.5), done.percentile(0.99)
	return measured, done.answer, nil
}
