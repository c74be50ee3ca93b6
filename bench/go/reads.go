package main

import (
	"strconv"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
)

func readKey(arguments *arguments) (measured, *answer, error) {
	return reads(arguments, false, false)
}

func readKeyWrites(arguments *arguments) (measured, *answer, error) {
	return reads(arguments, false, true)
}

func readIndex(arguments *arguments) (measured, *answer, error) {
	return reads(arguments, true, false)
}

func readIndexWrites(arguments *arguments) (measured, *answer, error) {
	return reads(arguments, true, true)
}

// reads measures many readers of the store of informers and listers, with an optional concurrent writer.
func reads(arguments *arguments, byIndex, withWriter bool) (measured, *answer, error) {
	template, err := arguments.template()
	if err != nil {
		return measured{}, nil, err
	}
	template.Namespace = fleet
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, groups)
	objects := make([]*corev1.Pod, arguments.size)
	keys := make([]string, arguments.size)
	for number := range objects {
		objects[number] = template.DeepCopy()
		objects[number].Name = name(number)
		keys[number] = fleet + "/" + name(number)
		if err := indexer.Add(objects[number]); err != nil {
			return measured{}, nil, err
		}
	}
	values := make([]string, (arguments.size+19)/20)
	for group := range values {
		values[group] = strconv.Itoa(group)
	}
	read := func(number int) uint64 {
		if byIndex {
			found, _ := indexer.ByIndex("group", values[number%len(values)])
			sum := uint64(0)
			for _, object := range found {
				sum += last(object)
			}
			return sum
		}
		object, found, _ := indexer.GetByKey(keys[number%len(keys)])
		if !found {
			return 0
		}
		return last(object)
	}
	var stop atomic.Bool
	written := make(chan int64)
	mark := now()
	go func() {
		count := int64(0)
		for withWriter && !stop.Load() {
			_ = indexer.Update(objects[int(count)%len(objects)])
			count++
		}
		written <- count
	}()
	ended := make(chan answer)
	for reader := range arguments.concurrency {
		go func() {
			var part answer
			for number := reader; number < arguments.count; number += arguments.concurrency {
				part.addNumber(read(number))
			}
			ended <- part
		}()
	}
	measured, answer := processed(arguments, mark, ended)
	stop.Store(true)
	measured.writes = <-written
	return measured, answer, nil
}

func last(object any) uint64 {
	name := object.(*corev1.Pod).Name
	return uint64(name[len(name)-1])
}
