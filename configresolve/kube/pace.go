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
	leading chan struct{} // holds an element while a first request is under way
	first   chan struct{} // closed when the others may go
	waiting chan struct{} // holds an element while a failed request waits

	mu       sync.Mutex
	failed   *answer       // the first request's, which holds for those that waited for it
	answered chan struct{} // closed, and replaced, at each answer
}

func newPace() *pace {
	return &pace{leading: make(chan struct{}, 1), first: make(chan struct{}), waiting: make(chan struct{}, 1),
		answered: make(chan struct{})}
}

// enter returns when the request may go: as the first one, which then has to
// leave, or after it. What failed says is that it has failed already.
func (p *pace) enter(ctx context.Context) (leads bool, failed *answer, err error) {
	if p.released() {
		return false, nil, nil
	}
	select {
	case <-p.first:
		return false, p.failed, nil
	case p.leading <- struct{}{}:
		return true, nil, nil
	case <-ctx.Done():
		return false, nil, ended(ctx)
	}
}

// leave lets another request be the first, if this one was that for nothing.
func (p *pace) leave() { <-p.leading }

func (p *pace) released() bool {
	select {
	case <-p.first:
		return true
	default:
		return false
	}
}

// connected lets the others go once there is a connection, after calling before.
func (p *pace) connected(before func()) { p.release(before) }

// attempted lets them go after an attempt. Where that has not reached the API
// server, nor would theirs; where it was given up, it says nothing.
func (p *pace) attempted(a answer) {
	switch {
	case a.unreached:
		p.release(func() { p.failed = &a })
	case a.response != nil || !a.final:
		p.release(func() {})
	}
}

func (p *pace) release(before func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.released() {
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
