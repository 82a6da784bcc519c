// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package kube

import (
	"context"
	"sync"
)

// pace makes several requests of one client no more of a burden than one. The
// first of all goes ahead: the others wait until it has a connection, which with
// HTTP/2 they share, or fail with it. Of those that have failed, one at a time
// waits for its turn to ask again, and once any request is answered they all go.
// A request that fails though others are answered is left to itself.
type pace struct {
	waiting chan struct{} // holds an element while a failed request waits

	mu       sync.Mutex
	begun    bool          // there is a first request
	first    chan struct{} // closed when the others may go
	failed   *answer       // the first request's, which holds for the others
	answered chan struct{} // closed, and replaced, at each answer
}

func newPace() *pace {
	return &pace{waiting: make(chan struct{}, 1), first: make(chan struct{}), answered: make(chan struct{})}
}

// enter returns when the request may go. What it returns says that it has
// failed already.
func (p *pace) enter(ctx context.Context) (failed *answer, err error) {
	p.mu.Lock()
	leads := !p.begun
	p.begun = true
	p.mu.Unlock()
	if leads {
		return nil, nil
	}
	select {
	case <-p.first:
		return p.failed, nil
	case <-ctx.Done():
		return nil, ended(ctx)
	}
}

// connected lets the others go once there is a connection, after calling before.
func (p *pace) connected(before func()) {
	p.release(before)
}

// attempted lets them go after an attempt. Where that has not reached the API
// server, nor would theirs.
func (p *pace) attempted(a answer) {
	p.release(func() {
		if a.unreached {
			p.failed = &a
		}
	})
}

func (p *pace) release(before func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.first:
	default:
		before()
		close(p.first)
	}
}

// tell wakes those that wait, since there is an answer.
func (p *pace) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.answered)
	p.answered = make(chan struct{})
}

// nextAnswer is closed at the next answer to any request.
func (p *pace) nextAnswer() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.answered
}
