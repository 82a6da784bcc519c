// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nobody is the attacker's user and group.
const nobody = 65534

// attacker is the attacking process, as seen by the one that makes the attempts.
type attacker struct {
	cmd     *exec.Cmd
	orders  *os.File
	answers *os.File
}

// startAttacker starts an attacker who exchanges the pairs of names in root/pub between
// each attack and the next stop.
func startAttacker(root string, pairs []pair) (*attacker, error) {
	args := []string{"/proc/self/exe", "-as", "attacker"}
	for _, p := range pairs {
		args = append(args, p[0]+":"+p[1])
	}
	dir, err := os.Open(root)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	in, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	answers, out, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	a := &attacker{cmd: exec.Command(args[0], args[1:]...), orders: orders, answers: answers}
	a.cmd.Stdin, a.cmd.Stdout, a.cmd.Stderr = in, out, os.Stderr
	a.cmd.ExtraFiles = []*os.File{dir} // its path is closed to others
	a.cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential:   &syscall.Credential{Uid: nobody, Gid: nobody},
		Unshareflags: unix.CLONE_NEWNS,
		Pdeathsig:    unix.SIGKILL,
	}
	_, _ = orders.Fd(), answers.Fd() // makes reads and writes block: there is no other work meanwhile
	return a, a.cmd.Start()
}

func (a *attacker) attack() error {
	_, err := a.orders.Write([]byte{'a'})
	return err
}

// stop returns when the attacker is idle, with the number of exchanges.
func (a *attacker) stop() (exchanges uint64, err error) {
	if _, err := a.orders.Write([]byte{'s'}); err != nil {
		return 0, err
	}
	err = binary.Read(a.answers, binary.LittleEndian, &exchanges)
	return exchanges, err
}

func (a *attacker) end() error {
	return errors.Join(a.orders.Close(), a.cmd.Wait(), a.answers.Close())
}

// exchange is the attacking process, with the directory as its descriptor 3. It attacks at each
// order to begin, and answers each order to stop with the number of exchanges, until there are
// no more orders.
func exchange(args []string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0); err != nil {
		return err
	}
	var pairs []pair
	for _, arg := range args {
		one, other, ok := strings.Cut(arg, ":")
		if !ok {
			return fmt.Errorf("%s is no pair of names", strconv.Quote(arg))
		}
		pairs = append(pairs, pair{one, other})
	}
	order := make([]byte, 1)
	for {
		if _, err := os.Stdin.Read(order); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		pub, err := unix.Openat(3, "pub", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return err
		}
		exchanges := exchangeUntilTold(pub, pairs)
		if err := unix.Close(pub); err != nil {
			return err
		}
		if _, err := os.Stdin.Read(order); err != nil {
			return err
		}
		if err := binary.Write(os.Stdout, binary.LittleEndian, exchanges); err != nil {
			return err
		}
	}
}

func exchangeUntilTold(dir int, pairs []pair) (exchanges uint64) {
	for !hasOrder(pause()) {
		p := pairs[rand.IntN(len(pairs))]
		if unix.Renameat2(dir, p[0], dir, p[1], unix.RENAME_EXCHANGE) == nil {
			exchanges++ // otherwise one of the names does not exist at the moment
		}
	}
	return exchanges
}

// pause returns how long a state lasts: only a patient attacker hits the end of an
// operation that looks at a name many times, and only a quick one a moment between two
// calls.
func pause() time.Duration {
	const longest = 500 // µs
	if rand.IntN(4) == 0 {
		return 0
	}
	return time.Duration(math.Pow(longest, rand.Float64()) * float64(time.Microsecond))
}

// hasOrder waits, and reports whether an order has arrived. It polls for short waits, since waking
// up takes longer.
func hasOrder(wait time.Duration) bool {
	if wait < 15*time.Microsecond {
		for start := time.Now(); time.Since(start) < wait; {
		}
		wait = 0
	}
	timeout := unix.NsecToTimespec(int64(wait))
	n, err := unix.Ppoll([]unix.PollFd{{Fd: 0, Events: unix.POLLIN}}, &timeout, nil)
	return n > 0 || err != nil && err != unix.EINTR
}
