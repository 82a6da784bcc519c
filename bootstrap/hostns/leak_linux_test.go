// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package hostns_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/hostns"
	"github.com/slipway-dev/slipway/internal/testns"
)

func descriptors(t testing.TB) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// collect closes the descriptors that earlier tests have left to the garbage collector.
func collect(t testing.TB) {
	t.Helper()
	for range 2 { // what the first collection's finalizers held goes in the second
		collected := make(chan struct{})
		runtime.SetFinalizer(new([16]byte), func(*[16]byte) { close(collected) })
		runtime.GC()
		select {
		case <-collected:
		case <-time.After(10 * time.Second):
			t.Fatal("nothing is collected")
		}
	}
}

// foreignThreads counts the process's threads and those in other namespaces
// than the process.
func foreignThreads(t testing.TB) (threads, foreign int) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	require.NoError(t, err)
	for _, e := range entries {
		for _, file := range everyNamespace {
			link, err := os.Readlink(filepath.Join("/proc/self/task", e.Name(), "ns", file))
			if err == nil && link != namespaceOf(t, "/proc/self", file) {
				foreign++
				break
			}
		}
	}
	return len(entries), foreign
}

// watch runs goroutines that examine their own namespaces until stop is closed, and send any
// foreign one.
func watch(own map[string]string, stop <-chan struct{}, found chan<- string) *sync.WaitGroup {
	var watchers sync.WaitGroup
	for range 4 {
		watchers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				for file, want := range own {
					if link, err := os.Readlink("/proc/thread-self/ns/" + file); err != nil || link != want {
						select {
						case found <- fmt.Sprint(link, err):
						default:
						}
						return
					}
				}
				runtime.Gosched()
			}
		})
	}
	return &watchers
}

func TestNS1_TenThousandCallsLeaveNothing(t *testing.T) {
	target := foreign(t)
	own := map[string]string{}
	for _, file := range everyNamespace {
		own[file] = namespaceOf(t, "/proc/self", file)
	}
	run := func(calls int) {
		const callers = 4
		var group sync.WaitGroup
		for caller := range callers {
			group.Go(func() {
				for i := range calls / callers {
					if err := leakyCall(t.Context(), target, caller+i); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		group.Wait()
	}
	run(200) // lets the runtime start its threads
	collect(t)
	fds := descriptors(t)
	threads, _ := foreignThreads(t)

	stop, found := make(chan struct{}), make(chan string, 1)
	watchers := watch(own, stop, found)
	run(10_000)
	close(stop)
	watchers.Wait()
	select {
	case link := <-found:
		t.Fatal("a goroutine ran in a foreign namespace: ", link)
	default:
	}
	require.Equal(t, fds, descriptors(t))
	// The last threads may still be exiting.
	require.Eventually(t, func() bool {
		now, foreign := foreignThreads(t)
		return foreign == 0 && now <= threads+8 // 4 callers, 4 watchers
	}, 10*time.Second, time.Millisecond)
}

var errLeaky = errors.New("expected")

// leakyCall makes calls that end in every way.
func leakyCall(ctx context.Context, target string, i int) error {
	ends := []func(context.Context) error{
		func(context.Context) error { return nil },
		func(context.Context) error { return errLeaky },
		func(context.Context) error { panic(errLeaky) },
		func(context.Context) error { // blocking lets other goroutines have the processor
			ready := make(chan struct{})
			go close(ready)
			<-ready
			return nil
		},
	}
	if err := hostns.Do(ctx, target, everyNamespace, ends[i%len(ends)]); err != nil && !errors.Is(err, errLeaky) {
		return err
	}
	return nil
}

// fromMainThread calls Do from the main thread many times and returns the first fault, if
// any. With one processor a goroutine started there runs there.
func fromMainThread(target string) error {
	runtime.UnlockOSThread() // locked by an init function of testns
	before, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	onMain := 0
	for range 100 {
		var isMain bool
		done := make(chan struct{})
		go func() { isMain = unix.Gettid() == unix.Getpid(); close(done) }()
		<-done
		if isMain {
			onMain++
		}
		inside := ""
		err := hostns.Do(context.Background(), target, everyNamespace, func(context.Context) (err error) {
			if unix.Gettid() == unix.Getpid() {
				return errors.New("runs on the main thread")
			}
			inside, err = os.Readlink("/proc/thread-self/ns/mnt")
			return err
		})
		if err != nil {
			return err
		}
		after, err := os.Readlink("/proc/self/ns/mnt")
		if err != nil || after != before || inside == before {
			return fmt.Errorf("namespace before %s, inside %s, after %s: %w", before, inside, after, err)
		}
	}
	if onMain == 0 {
		return errors.New("no goroutine ran on the main thread: nothing is shown")
	}
	return nil
}

func TestNS1_MainThreadIsNeverUsed(t *testing.T) {
	testns.Root(t)
	require.Equal(t, "<nil>\n", helper(t, "main-thread", nil, foreign(t)))
}
