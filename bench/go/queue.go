package main

import (
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/workqueue"
)

// queueSteady has each worker add a key, and process the one whose turn it is. No key comes twice: two adds could become one.
func queueSteady(arguments *arguments) (measured, *answer, error) {
	keys := keysOf(arguments.count)
	queue := workqueue.NewTyped[string]()
	mark := now()
	ended := make(chan answer)
	for worker := range arguments.concurrency {
		go func() {
			var part answer
			for number := worker; number < arguments.count; number += arguments.concurrency {
				queue.Add(keys[number])
				key, _ := queue.Get()
				process(key, &part)
				queue.Done(key)
			}
			ended <- part
		}()
	}
	measured, answer := processed(arguments, mark, ended)
	return measured, answer, nil
}

// queueBurst adds all keys as fast as it can, and has workers process them.
func queueBurst(arguments *arguments) (measured, *answer, error) {
	keys := keysOf(arguments.count)
	mark := now()
	queue := workqueue.NewTyped[string]()
	ended := make(chan answer)
	for range arguments.concurrency {
		go func() {
			var part answer
			for {
				key, over := queue.Get()
				if over {
					break
				}
				process(key, &part)
				queue.Done(key)
			}
			ended <- part
		}()
	}
	go func() {
		for _, key := range keys {
			queue.Add(key)
		}
		queue.ShutDownWithDrain()
	}()
	measured, answer := processed(arguments, mark, ended)
	return measured, answer, nil
}

// queueDelayed has each key wait up to 100 ms, fail once, and return after the limiter's delay.
func queueDelayed(arguments *arguments) (measured, *answer, error) {
	keys := keysOf(arguments.count)
	mark := now()
	limiter := workqueue.NewTypedItemExponentialFailureRateLimiter[string](5*time.Millisecond, 1000*time.Second)
	queue := workqueue.NewTypedRateLimitingQueue(limiter)
	var ready atomic.Int64
	ended := make(chan answer)
	for range arguments.concurrency {
		go func() {
			var part answer
			for {
				key, over := queue.Get()
				if over {
					break
				}
				if queue.NumRequeues(key) == 0 {
					queue.AddRateLimited(key)
					queue.Done(key)
					continue
				}
				process(key, &part)
				queue.Forget(key)
				queue.Done(key)
				if int(ready.Add(1)) == arguments.count {
					queue.ShutDown()
				}
			}
			ended <- part
		}()
	}
	for number, key := range keys {
		queue.AddAfter(key, time.Duration(number%100)*time.Millisecond)
	}
	measured, answer := processed(arguments, mark, ended)
	return measured, answer, nil
}

func keysOf(count int) []string {
	keys := make([]string, count)
	for number := range keys {
		keys[number] = fleet + "/" + name(number)
	}
	return keys
}

func process(key string, part *answer) {
	part.addNumber(uint64(key[len(key)-1]))
}

func processed(arguments *arguments, mark mark, ended chan answer) (measured, *answer) {
	all := &answer{}
	for range arguments.concurrency {
		part := <-ended
		all.count += part.count
		all.sum += part.sum
	}
	return mark.measured(), all
}
