// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package gate

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// answerTime bounds the kernel's answer, which comes at once.
const answerTime = 5 // seconds

// inNFTables asks nf_tables for each chain by its name, over netlink: the answer is
// the chain, or that there is none.
func inNFTables(f family) (bool, error) {
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if errors.Is(err, unix.EPROTONOSUPPORT) {
		return false, nil // a kernel without it
	}
	if err != nil {
		return false, os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: answerTime}); err != nil {
		return false, os.NewSyscallError("setsockopt", err)
	}
	for i, c := range chains() {
		found, err := hasChain(fd, uint32(i+1), f.nft, c)
		if err != nil || found {
			return found, err
		}
	}
	return false, nil
}

func hasChain(fd int, sequence uint32, family uint8, c chain) (bool, error) {
	const getChain = unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETCHAIN
	body := []byte{family, unix.NFNETLINK_V0, 0, 0} // struct nfgenmsg
	body = appendAttr(body, unix.NFTA_CHAIN_TABLE, c.table)
	body = appendAttr(body, unix.NFTA_CHAIN_NAME, c.name)
	message := binary.NativeEndian.AppendUint32(nil, uint32(unix.NLMSG_HDRLEN+len(body)))
	message = binary.NativeEndian.AppendUint16(message, getChain)
	message = binary.NativeEndian.AppendUint16(message, unix.NLM_F_REQUEST)
	message = binary.NativeEndian.AppendUint32(message, sequence)
	message = binary.NativeEndian.AppendUint32(message, 0)
	if err := unix.Sendto(fd, append(message, body...), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return false, os.NewSyscallError("sendto", err)
	}
	answer := make([]byte, 8<<10)
	n, from, err := unix.Recvfrom(fd, answer, 0)
	if err != nil {
		return false, os.NewSyscallError("recvfrom", err)
	}
	if kernel, ok := from.(*unix.SockaddrNetlink); !ok || kernel.Pid != 0 || n < unix.NLMSG_HDRLEN+4 {
		return false, fmt.Errorf("a netlink message of %d bytes is not the kernel's answer", n)
	}
	switch kind := binary.NativeEndian.Uint16(answer[4:]); kind {
	case unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_NEWCHAIN:
		return true, nil
	case unix.NLMSG_ERROR:
		return false, missing(unix.Errno(-int32(binary.NativeEndian.Uint32(answer[unix.NLMSG_HDRLEN:]))))
	default:
		return false, fmt.Errorf("the kernel's answer is of the unknown type %#x", kind)
	}
}

// missing returns nil where the error says that there is no such chain or table, or no
// nf_tables.
func missing(errno unix.Errno) error {
	switch errno {
	case unix.ENOENT, unix.EINVAL, unix.EOPNOTSUPP, unix.EAFNOSUPPORT:
		return nil
	}
	return os.NewSyscallError("netlink", errno)
}

// appendAttr appends a string, with its end, as struct nlattr.
func appendAttr(to []byte, kind uint16, value string) []byte {
	to = binary.NativeEndian.AppendUint16(to, uint16(unix.SizeofNlAttr+len(value)+1))
	to = binary.NativeEndian.AppendUint16(to, kind)
	to = append(append(to, value...), 0)
	for len(to)%unix.NLMSG_ALIGNTO != 0 {
		to = append(to, 0)
	}
	return to
}
