package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

func replayKeys(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	return replay(ctx, arguments, clientset, func(answer *answer, object any) {
		key, _ := cache.MetaNamespaceKeyFunc(object)
		namespace, name, _ := strings.Cut(key, "/")
		answer.addKey(namespace, name)
	})
}

func replayTyped(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	return replay(ctx, arguments, clientset, func(answer *answer, object any) { answer.addPod(object.(*corev1.Pod)) })
}

// replay requests changes from the server, which pass through reflector, fifo and store of a synced informer to a handler.
func replay(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset, take func(*answer, any)) (measured, *answer, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace(fleet), informers.WithTransform(withoutManagedFields))
	informer := factory.Core().V1().Pods().Informer()
	answer := &answer{}
	done := make(chan struct{})
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, object any) {
		take(answer, object)
		if int(answer.count) == arguments.count {
			close(done)
		}
	}})
	if err != nil {
		return measured{}, nil, err
	}
	factory.Start(ctx.Done())
	<-registration.HasSyncedChecker().Done()
	mark := now()
	if err := replayChanges(arguments); err != nil {
		return measured{}, nil, err
	}
	<-done
	return mark.measured(), answer, nil
}

// replayChanges requests that the server sends the changes to one watch, now or as soon as a watch is open.
func replayChanges(arguments *arguments) error {
	return ask(arguments, "change")
}

func ask(arguments *arguments, what string) error {
	asked, err := http.Post("http://"+arguments.replay+"/replay/"+what, "", nil)
	if err != nil {
		return err
	}
	asked.Body.Close()
	if asked.StatusCode != http.StatusOK {
		return fmt.Errorf("the replay server answers %s", asked.Status)
	}
	return nil
}

// expire requests that the server ends the watch and rejects its resumption, so that the informer lists again.
func expire(ctx context.Context, arguments *arguments, clientset *kubernetes.Clientset) (measured, *answer, error) {
	factory := informers.NewSharedInformerFactoryWithOptions(clientset, 0, informers.WithNamespace(fleet), informers.WithTransform(withoutManagedFields))
	informer := factory.Core().V1().Pods().Informer()
	// client-go calls the handler for every object of a relist, changed or not.
	told, done := 0, make(chan struct{})
	registration, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) {
		told++
		if told == arguments.size {
			close(done)
		}
	}})
	if err != nil {
		return measured{}, nil, err
	}
	factory.Start(ctx.Done())
	<-registration.HasSyncedChecker().Done()
	time.Sleep(time.Second)
	before := resident()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return measured{}, nil, err
	}
	mark := now()
	if err := ask(arguments, "expire"); err != nil {
		return measured{}, nil, err
	}
	<-done
	measured := mark.measured()
	measured.peakRSSBytes = memory("VmHWM:")
	measured.heapBytes = inUse()
	measured.rssBytes = before
	return measured, cached(informer.GetStore()), nil
}
