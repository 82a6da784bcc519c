// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cri

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// verbose is StatusRequest{verbose: true}.
var verbose = []byte{1 << 3, 1}

var errMalformed = errors.New("read the answer: it is not a protobuf message of the CRI")

// parseStatus reads containerd's entries that are needed of the map<string, string>
// info = 2 of a StatusResponse (cri-api, runtime/v1/api.proto). They alias answer.
func parseStatus(answer []byte) (info map[string][]byte, err error) {
	info = map[string][]byte{}
	err = each(answer, func(number uint64, value []byte) error {
		if number != 2 {
			return nil
		}
		entry, err := fields(value)
		switch key := string(entry[1]); key {
		case "cniconfig", "config", "lastCNILoadStatus":
			info[key] = entry[2]
		}
		return err
	})
	return info, err
}

// parseVersion reads a VersionResponse: string runtime_name = 2, runtime_version = 3.
func parseVersion(_ Endpoint, answer []byte) (identity, error) {
	v, err := fields(answer)
	return identity{Name: string(v[2]), Version: string(v[3])}, err
}

// parseSandboxes reads the IDs of a ListPodSandboxResponse: repeated PodSandbox
// items = 1, each with string id = 1.
func parseSandboxes(_ Endpoint, answer []byte) (ids []string, err error) {
	err = each(answer, func(number uint64, value []byte) error {
		if number != 1 {
			return nil
		}
		sandbox, err := fields(value)
		switch {
		case err != nil:
			return err
		case len(sandbox[1]) == 0:
			return errors.New("read the answer: a sandbox has no ID")
		case len(ids) == maxElements:
			return fmt.Errorf("read the answer: %w", errCrowded)
		}
		ids = append(ids, string(sandbox[1]))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// fields returns the contents of a message's fields by their number, of each the last.
func fields(message []byte) (all [4][]byte, err error) {
	err = each(message, func(number uint64, value []byte) error {
		if number < uint64(len(all)) {
			all[number] = value
		}
		return nil
	})
	return all, err
}

// each calls f for each field of a protobuf message, with the bytes of a string or
// message, or of a varint. Fixed numbers are skipped; groups, which proto3 does not have,
// are an error (protobuf.dev, Encoding).
func each(message []byte, f func(number uint64, value []byte) error) error {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 || tag>>3 == 0 {
			return errMalformed
		}
		value, rest, ok := field(tag&7, message[n:])
		if !ok {
			return errMalformed
		}
		if err := f(tag>>3, value); err != nil {
			return err
		}
		message = rest
	}
	return nil
}

// field takes the content of a field of the wire type from the start of message.
func field(wire uint64, message []byte) (value, rest []byte, ok bool) {
	number, n := binary.Uvarint(message)
	switch wire {
	case 0:
		return message[:max(n, 0)], message[max(n, 0):], n > 0
	case 2:
		if n <= 0 || number > uint64(len(message)-n) {
			return nil, nil, false
		}
		end := n + int(number)
		return message[n:end], message[end:], true
	}
	size, fixed := map[uint64]int{1: 8, 5: 4}[wire]
	if !fixed || size > len(message) {
		return nil, nil, false
	}
	return nil, message[size:], true
}
