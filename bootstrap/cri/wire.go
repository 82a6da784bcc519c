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

var errNoID = errors.New("read the answer: a sandbox has no ID")

// parseStatus reads the fields of a StatusResponse that are needed (cri-api,
// runtime/v1/api.proto): the conditions in status (1), and containerd's entries of the
// map info (2). The entries of info alias answer.
func parseStatus(answer []byte) (s Status, info map[string][]byte, err error) {
	info = map[string][]byte{}
	err = fields(answer, func(number uint64, value []byte, _ uint64) error {
		switch number {
		case 1:
			return s.parseConditions(value)
		case 2:
			key, content, err := parseEntry(value)
			switch key := string(key); key {
			case "cniconfig", "config", "lastCNILoadStatus":
				info[key] = content
			}
			return err
		}
		return nil
	})
	return s, info, err
}

// parseConditions reads a RuntimeStatus: repeated RuntimeCondition conditions = 1.
func (s *Status) parseConditions(message []byte) error {
	return fields(message, func(number uint64, value []byte, _ uint64) error {
		if number != 1 {
			return nil
		}
		kind, reason, text, holds := "", "", "", false
		err := fields(value, func(number uint64, value []byte, varint uint64) error {
			switch number {
			case 1:
				kind = string(value)
			case 2:
				holds = varint != 0
			case 3:
				reason = string(value)
			case 4:
				text = string(value)
			}
			return nil
		})
		if kind != "NetworkReady" {
			return err
		}
		if s.NetworkReady, s.Reason = holds, ""; !holds {
			s.Reason = reason
			if text != "" {
				s.Reason = text
			}
		}
		return err
	})
}

// parseVersion reads a VersionResponse: string runtime_name = 2, runtime_version = 3.
func parseVersion(answer []byte) (r Runtime, err error) {
	err = fields(answer, func(number uint64, value []byte, _ uint64) error {
		switch number {
		case 2:
			r.Name = string(value)
		case 3:
			r.Version = string(value)
		}
		return nil
	})
	return r, err
}

// parseEntry reads an entry of a map<string, string>.
func parseEntry(message []byte) (key, content []byte, err error) {
	err = fields(message, func(number uint64, value []byte, _ uint64) error {
		switch number {
		case 1:
			key = value
		case 2:
			content = value
		}
		return nil
	})
	return key, content, err
}

// parseSandboxes reads the IDs of a ListPodSandboxResponse: repeated PodSandbox
// items = 1, each with string id = 1.
func parseSandboxes(answer []byte) (ids []string, err error) {
	err = fields(answer, func(number uint64, value []byte, _ uint64) error {
		if number != 1 {
			return nil
		}
		id := ""
		err := fields(value, func(number uint64, value []byte, _ uint64) error {
			if number == 1 {
				id = string(value)
			}
			return nil
		})
		if err == nil && id == "" {
			err = errNoID
		}
		if len(ids) == maxElements {
			return fmt.Errorf("read the answer: %w", errCrowded)
		}
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// fields calls f for each field of a protobuf message, with the bytes of a string
// or message, or with the number of a varint. Fixed numbers are skipped; groups,
// which proto3 does not have, are an error (protobuf.dev, Encoding).
func fields(message []byte, f func(number uint64, value []byte, varint uint64) error) error {
	for len(message) > 0 {
		tag, n := binary.Uvarint(message)
		if n <= 0 || tag>>3 == 0 {
			return errMalformed
		}
		value, varint, rest, ok := field(tag&7, message[n:])
		if !ok {
			return errMalformed
		}
		if err := f(tag>>3, value, varint); err != nil {
			return err
		}
		message = rest
	}
	return nil
}

// field takes the content of a field of the wire type from the start of message.
func field(wire uint64, message []byte) (value []byte, varint uint64, rest []byte, ok bool) {
	switch wire {
	case 0:
		varint, n := binary.Uvarint(message)
		return nil, varint, message[max(n, 0):], n > 0
	case 2:
		size, n := binary.Uvarint(message)
		if n <= 0 || size > uint64(len(message)-n) {
			return nil, 0, nil, false
		}
		end := n + int(size)
		return message[n:end], 0, message[end:], true
	}
	size, fixed := map[uint64]int{1: 8, 5: 4}[wire]
	if !fixed || size > len(message) {
		return nil, 0, nil, false
	}
	return nil, 0, message[size:], true
}
