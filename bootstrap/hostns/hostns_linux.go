// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	"golang.org/x/sys/unix"
)

func do(ctx context.Context, procDir string, namespaces []string, f func(context.Context) error) error {
	// Opened on the caller's thread: procDir is a path of its mount namespace,
	// which need not be the process's.
	targets, err := openTargets(procDir, namespaces)
	if err != nil {
		return err
	}
	result := errors.New("function in a namespace ended its goroutine (runtime.Goexit) instead of returning")
	onThread(func() {
		defer func() {
			if p := recover(); p != nil {
				result = panicError(p)
			}
		}()
		if err := enter(targets); err != nil {
			result = err
			return
		}
		result = f(context.WithValue(ctx, threadKey{}, thread{procDir, namespaces, unix.Gettid()}))
	})
	return result
}

// threadKey is the context key of the thread that is in namespaces.
type threadKey struct{}

type thread struct {
	procDir    string
	namespaces []string
	tid        int
}

// inside reports whether the calling thread is in all of the namespaces already.
func inside(ctx context.Context, procDir string, namespaces []string) bool {
	t, _ := ctx.Value(threadKey{}).(thread)
	isOther := func(name string) bool { return !slices.Contains(t.namespaces, name) }
	return t.tid == unix.Gettid() && t.procDir == procDir && !slices.ContainsFunc(namespaces, isOther)
}

func panicError(p any) error {
	if err, ok := p.(error); ok {
		return fmt.Errorf("panic in a namespace: %w\n%s", err, debug.Stack())
	}
	return fmt.Errorf("panic in a namespace: %v\n%s", p, debug.Stack())
}

// onThread runs f on a thread that ends with it, and waits for f.
func onThread(f func()) {
	done := make(chan struct{})
	run := func() {
		defer close(done) // also after runtime.Goexit
		f()
	}
	go func() {
		runtime.LockOSThread() // never unlocked: the thread dies with its goroutine
		if unix.Gettid() != unix.Getpid() {
			run()
			return
		}
		// The main thread cannot end: the runtime would park it for good in the
		// foreign namespaces, and /proc/PID of this process shows the namespaces of
		// its main thread. So it is kept busy until another goroutine has got another
		// thread.
		started := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(started)
			run()
		}()
		<-started
		runtime.UnlockOSThread()
	}()
	<-done
}

// enter moves the calling thread into the targets and closes them.
func enter(targets []target) error {
	defer closeTargets(targets)
	for _, t := range targets {
		own := t.isOwn()
		if own && (t.ns != "mnt" || t.inherited) {
			continue
		}
		if t.ns == "mnt" {
			// Root and working directory are shared between a program's threads;
			// setns of a mount namespace refuses a thread that shares them.
			if err := unix.Unshare(unix.CLONE_FS); err != nil {
				return t.fail("unshare", err)
			}
		}
		if err := unix.Setns(t.fd, cloneFlags[t.ns]); err != nil {
			return t.fail("setns", err)
		}
	}
	return nil
}
