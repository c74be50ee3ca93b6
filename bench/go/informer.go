package main

import (
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// cached is the content of an informer's cache.
func cached(store cache.Store) *answer {
	answer := &answer{}
	for _, object := range store.List() {
		answer.addPod(object.(*corev1.Pod))
	}
	return answer
}

// syncInformer fills the cache of an informer with a handler, with the library's defaults.
func syncInformer(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	return syncFrom(ctx, now(), clientset)
}

// cold measures the same from the start of the process.
func cold(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	return syncFrom(ctx, ofProcess(arguments.started), clientset)
}

func syncFrom(ctx context.Context, mark mark, clientset *kubernetes.Clientset) (measured, *answer, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace(fleet), informers.WithTransform(withoutManagedFields))
	informer := factory.Core().V1().Pods().Informer()
	var told atomic.Int64
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) { told.Add(1) }})
	if err != nil {
		return measured{}, nil, err
	}
	factory.Start(ctx.Done())
	<-registration.HasSyncedChecker().Done()
	measured := mark.measured()
	measured.rest()
	answer := cached(informer.GetStore())
	if int(told.Load()) != int(answer.count) {
		return measured, nil, errors.New("the handler was not told of everything")
	}
	return measured, answer, nil
}

// withoutManagedFields is the transform that users set to save memory.
func withoutManagedFields(object any) (any, error) {
	if metadata, isObject := object.(metav1.Object); isObject {
		metadata.SetManagedFields(nil)
	}
	return object, nil
}

// oldInformer lists the state of an old version, so that the watch sends the later events.
// It reports when the watch starts.
func oldInformer(ctx context.Context, clientset *kubernetes.Clientset, since string, begin func()) cache.SharedIndexInformer {
	api := pods(clientset)
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			options.ResourceVersion, options.ResourceVersionMatch, options.Limit = since, metav1.ResourceVersionMatchExact, 0
			return api.List(ctx, options)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			begin()
			return api.Watch(ctx, options)
		},
	}
	informer := cache.NewSharedIndexInformer(source, &corev1.Pod{}, 0, cache.Indexers{})
	_ = informer.SetTransform(withoutManagedFields)
	return informer
}

// informerEvents measures past events on their way through reflector, fifo and store to a handler that takes the key.
func informerEvents(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	var begun mark
	var once sync.Once
	informer := oldInformer(ctx, clientset, arguments.since, func() { once.Do(func() { begun = now() }) })
	answer := &answer{}
	done := make(chan struct{})
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, object any) {
		key, _ := cache.MetaNamespaceKeyFunc(object)
		namespace, name, _ := strings.Cut(key, "/")
		answer.addKey(namespace, name)
		if int(answer.count) == arguments.count {
			close(done)
		}
	}})
	if err != nil {
		return measured{}, nil, err
	}
	go informer.RunWithContext(ctx)
	<-done
	return begun.measured(), answer, nil
}

// groups returns the group of a pod. Each group has twenty pods, which differ in the last digits of their names.
var groups = cache.Indexers{"group": func(object any) ([]string, error) {
	number, err := strconv.Atoi(strings.TrimPrefix(object.(*corev1.Pod).Name, "web-"))
	return []string{strconv.Itoa(number / 20)}, err
}}

// index looks objects up by index values, 20 for each.
func index(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace(fleet), informers.WithTransform(withoutManagedFields))
	informer := factory.Core().V1().Pods().Informer()
	if err := informer.AddIndexers(groups); err != nil {
		return measured{}, nil, err
	}
	factory.Start(ctx.Done())
	<-informer.HasSyncedChecker().Done()
	indexer := informer.GetIndexer()
	values := indexer.ListIndexFuncValues("group")
	slices.Sort(values)
	answer := &answer{}
	mark := now()
	for number := range arguments.count {
		objects, err := indexer.ByIndex("group", values[number%len(values)])
		if err != nil {
			return measured{}, nil, err
		}
		sum := uint64(0)
		for _, object := range objects {
			sum += last(object)
		}
		answer.addNumber(sum)
	}
	return mark.measured(), answer, nil
}

// resident returns the resident memory of this process.
func resident() int64 {
	return memory("VmRSS:")
}

func memory(name string) int64 {
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if rest, found := strings.CutPrefix(line, name); found {
			kilobytes, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kilobytes * 1024
		}
	}
	return 0
}
