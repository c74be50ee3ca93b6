package main

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clientinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// informers checks caches after a watch that ended, a watch that broke, and a watch whose resource version expired.
func informers(ctx context.Context, config *rest.Config, owner *owner) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config.ContentType = "application/vnd.kubernetes.protobuf"
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := clientinformers.NewSharedInformerFactory(client, 0)
	defer factory.Shutdown()
	defer cancel()
	maps := factory.Core().V1().ConfigMaps()
	pods := factory.Core().V1().Pods().Informer()
	seen := &seen{}
	if _, err := maps.Informer().AddEventHandler(seen.handler()); err != nil {
		return err
	}
	api := client.CoreV1().ConfigMaps("default")
	if err := fill(ctx, client, 0, 50); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), maps.Informer().HasSynced, pods.HasSynced) {
		return fmt.Errorf("the caches did not sync")
	}
	// agree waits until the cache has the same objects as the server.
	agree := func(what string) error {
		return eventually(ctx, what, func() bool {
			listed, err := api.List(ctx, metav1.ListOptions{})
			cached, _ := maps.Lister().ConfigMaps("default").List(labels.Everything())
			return err == nil && versions(listed.Items) == cachedVersions(cached)
		})
	}
	if err := agree("what there was is in the cache"); err != nil {
		return err
	}
	if err := change(ctx, client, 0); err != nil {
		return err
	}
	if err := eventually(ctx, "all handlers were called", func() bool { return seen.all(51, 2, 1) }); err != nil {
		return err
	}
	for round, fault := range []string{"end-watches", "cut-watches", "forget"} {
		if err := owner.ask(fault); err != nil {
			return err
		}
		if err := change(ctx, client, round+1); err != nil {
			return err
		}
		if fault == "forget" {
			// The server drops the history of these changes before the informer may request it.
			if err := owner.ask("remember"); err != nil {
				return err
			}
		}
		if err := agree("the cache is right after " + fault); err != nil {
			return err
		}
		last := fmt.Sprintf("map-%d", round+2)
		if err := eventually(ctx, "a handler saw the deletion after "+fault, func() bool { return seen.deletedOne(last) }); err != nil {
			return err
		}
	}
	return nil
}

// fill creates the objects with numbers from `from` up to, but not including, `to`.
func fill(ctx context.Context, client kubernetes.Interface, from, to int) error {
	for i := from; i < to; i++ {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("map-%d", i)}}
		if _, err := client.CoreV1().ConfigMaps("default").Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// change creates one object, updates and patches another, and deletes a third.
func change(ctx context.Context, client kubernetes.Interface, round int) error {
	api := client.CoreV1().ConfigMaps("default")
	if err := fill(ctx, client, 100+round, 101+round); err != nil {
		return err
	}
	object, err := api.Get(ctx, "map-30", metav1.GetOptions{})
	if err != nil {
		return err
	}
	object.Data = map[string]string{"round": fmt.Sprint(round)}
	if _, err := api.Update(ctx, object, metav1.UpdateOptions{}); err != nil {
		return err
	}
	label := fmt.Appendf(nil, `{"metadata": {"labels": {"round": "%d"}}}`, round)
	if _, err := api.Patch(ctx, "map-31", types.StrategicMergePatchType, label, metav1.PatchOptions{}); err != nil {
		return err
	}
	return api.Delete(ctx, fmt.Sprintf("map-%d", round+1), metav1.DeleteOptions{})
}

// seen records the calls of handlers.
type seen struct {
	sync.Mutex
	added, updated int
	deleted        sets.Set[string]
}

func (s *seen) handler() cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) {
			s.Lock()
			defer s.Unlock()
			s.added++
		},
		UpdateFunc: func(_, _ any) {
			s.Lock()
			defer s.Unlock()
			s.updated++
		},
		DeleteFunc: func(object any) {
			s.Lock()
			defer s.Unlock()
			key, _ := cache.DeletionHandlingObjectToName(object)
			if s.deleted == nil {
				s.deleted = sets.New[string]()
			}
			s.deleted.Insert(key.Name)
		},
	}
}

func (s *seen) all(added, updated, deleted int) bool {
	s.Lock()
	defer s.Unlock()
	return s.added == added && s.updated == updated && s.deleted.Len() == deleted
}

func (s *seen) deletedOne(name string) bool {
	s.Lock()
	defer s.Unlock()
	return s.deleted.Has(name)
}

func versions(objects []corev1.ConfigMap) string {
	found := sets.New[string]()
	for _, object := range objects {
		found.Insert(object.Name + "@" + object.ResourceVersion)
	}
	return fmt.Sprint(sets.List(found))
}

func cachedVersions(objects []*corev1.ConfigMap) string {
	found := sets.New[string]()
	for _, object := range objects {
		found.Insert(object.Name + "@" + object.ResourceVersion)
	}
	return fmt.Sprint(sets.List(found))
}
