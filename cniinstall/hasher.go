// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cniinstall

import (
	"crypto/sha256"
	"encoding/hex"
)

const (
	bufferSize = 1 << 20
	buffers    = 4
)

// hasher hashes what a copier has in memory, beside it: on a fast disk that
// takes as long as the copying. Its goroutine touches nothing else. One that is
// not to hash has none.
type hasher struct {
	free, full chan []byte
	sum        chan string
}

func startHasher(wanted bool) *hasher {
	h := &hasher{free: make(chan []byte, buffers)}
	if !wanted {
		h.free <- make([]byte, bufferSize)
		return h
	}
	for range buffers {
		h.free <- make([]byte, bufferSize)
	}
	h.full, h.sum = make(chan []byte, buffers), make(chan string, 1)
	go h.run()
	return h
}

func (h *hasher) run() {
	sum := sha256.New()
	for buf := range h.full {
		sum.Write(buf)
		h.free <- buf[:bufferSize]
	}
	h.sum <- hex.EncodeToString(sum.Sum(nil))
}

// buffer is one to fill, as soon as there is one.
func (h *hasher) buffer() []byte { return <-h.free }

// add takes a buffer back, with what it now holds.
func (h *hasher) add(buf []byte) {
	if h.full == nil {
		h.free <- buf[:bufferSize]
		return
	}
	h.full <- buf
}

// finish ends the goroutine, and gives the hash in hex if it is wanted.
func (h *hasher) finish() string {
	if h.full == nil {
		return ""
	}
	close(h.full)
	return <-h.sum
}
