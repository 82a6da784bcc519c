// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package journal

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// A journal is a file of lines, one for each record:
//
//	LENGTH SUM {"record":"entry",...}
//
// LENGTH is that of the JSON text in bytes, in decimal. SUM is in hex: the first eight
// bytes of the SHA-256 of the previous line's SUM, the LENGTH and the text. So each line
// vouches for all lines before it, and a missing, doubled or moved line is detected like
// a garbled one. CRC-32C would find each garbled byte too, but one in 4 billion blocks of
// garbage from a broken disk would pass it. The sum does not stop attackers: anyone who
// may write here can compute it.
//
// A killed writer leaves a strict prefix of its lines. No caller was told that they are
// recorded, so they do not count, and the next writer removes them. A file system that
// loses its power may leave NUL bytes in the place of the rest.

// sumSize is the length of a line's sum, in hex.
const sumSize = 16

// maxLine bounds a line: a record with its envelope, and its length and sum.
const maxLine = maxRecord + 256

// sumOf returns the sum of a line with this text after one with the sum prev.
func sumOf(prev, length string, text []byte) string {
	h := sha256.New()
	io.WriteString(h, prev+" "+length+" ")
	h.Write(text)
	return hex.EncodeToString(h.Sum(nil))[:sumSize]
}

// lineWriter writes the lines of a file.
type lineWriter struct {
	w   *bufio.Writer
	sum string // of the last line
	n   int64  // bytes
}

func newLineWriter(w io.Writer, sum string) *lineWriter {
	return &lineWriter{w: bufio.NewWriterSize(w, 64<<10), sum: sum}
}

func (l *lineWriter) write(text []byte) error {
	length := strconv.Itoa(len(text))
	l.sum = sumOf(l.sum, length, text)
	n, err := fmt.Fprintf(l.w, "%s %s %s\n", length, l.sum, text)
	l.n += int64(n)
	return err
}

// lineReader reads the lines of a file.
type lineReader struct {
	r   *bufio.Reader
	sum string // of the last line
	n   int64  // where it is in the file
}

// newLineReader reads the lines after one with this sum, which ends at n.
func newLineReader(r io.Reader, sum string, n int64) *lineReader {
	return &lineReader{bufio.NewReaderSize(r, maxLine), sum, n}
}

var errGarbled = errors.New("its length and checksum do not match its text")

// next returns the text of the next line, until the next call. The error is io.EOF at the
// end, and io.ErrUnexpectedEOF where the last line was not written to its end.
func (l *lineReader) next() ([]byte, error) {
	line, err := l.r.ReadSlice('\n')
	switch {
	case err == io.EOF && len(line) == 0:
		return nil, io.EOF
	case err == io.EOF && l.isTorn(line):
		return nil, io.ErrUnexpectedEOF
	case err == io.EOF || errors.Is(err, bufio.ErrBufferFull):
		return nil, errGarbled
	case err != nil:
		return nil, err
	}
	length, sum, text, whole := cutLine(line[:len(line)-1])
	if !whole || length != strconv.Itoa(len(text)) || sum != sumOf(l.sum, length, text) {
		return nil, errGarbled
	}
	l.sum = sum
	l.n += int64(len(line))
	return text, nil
}

// cutLine cuts a line, or the beginning of one, into its parts.
func cutLine(line []byte) (length, sum string, text []byte, whole bool) {
	l, rest, _ := bytes.Cut(line, []byte(" "))
	s, text, whole := bytes.Cut(rest, []byte(" "))
	return string(l), string(s), text, whole
}

// isTorn reports whether rest, which has no newline, is the beginning of a line, as left
// by a killed writer.
func (l *lineReader) isTorn(rest []byte) bool {
	begun := bytes.TrimRight(rest, "\x00")
	length, sum, text, whole := cutLine(begun)
	n, err := strconv.Atoi(length)
	switch {
	case len(begun) == 0:
		return true
	case err != nil || n <= 0 || n > maxLine || strconv.Itoa(n) != length:
		return false
	case !whole:
		return len(sum) <= sumSize && isHex(sum)
	case len(sum) != sumSize || !isHex(sum) || bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' }):
		return false
	case len(text) == n: // only the newline is missing, and nothing is in its place
		return len(begun) == len(rest) && sum == sumOf(l.sum, length, text)
	}
	return len(text) < n
}

// isHex reports whether s is of hexadecimal digits, as encoding/hex writes them.
func isHex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}
