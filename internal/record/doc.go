// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

// Package record is the memory of undo: before a package changes something on
// a node it notes here what was there, so that another process, days later,
// can put it back.
//
// A [Book] is one package's record, a JSON file STATEDIR/NAME.json that only
// its owner reads or writes (mode 0600, in a directory of mode 01700). Each
// [Entry] is one object: a file, a directory, a mount, a kernel value. Its
// life:
//
//	Begin     what is there now and what shall be, on disk before it returns
//	          ... the change is made ...
//	Complete  what is there in the end
//	Undo      looks: as it was left? then it is put back; else left alone
//
// Rules that hold in every case:
//
//   - The prior state of an object is kept once, from its first Begin. However
//     often it is changed after that, the original is what comes back.
//   - An entry begun and not completed (the process was killed between) is
//     decided by looking at the object.
//   - What is no longer as it was left belongs to somebody else: it is left in
//     place, reported as [ErrChanged], and forgotten.
//   - Content over [MaxInline] bytes lies beside the book, in files named
//     NAME.blob.SHA256, never in it.
//   - The book goes with its last entry, the directory with its last book.
//   - A book that cannot be read, or that a newer version wrote, is an error,
//     and nothing is undone or recorded.
//
// Books take no lock: whoever changes a node holds the node's lock.
package record
