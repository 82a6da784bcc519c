// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-dev/slipway/internal/verify/programs"
)

// group is the directory of kept files, in the cache.
const group = "kernels"

const (
	newest = "newest"
	arm64  = "arm64"

	rootRelease     = "bookworm" // has tools that know the oldest kernel and the newest
	emulatorRelease = "trixie"   // QEMU before 8 gives Linux 6.18 wrong flags in half of the boots
)

// Debian's suites with the kernels. Suites that are no longer updated are past their expiry.
var suites = []string{"%s-security bullseye-security", "%s bookworm", "%s-security bookworm-security", "%s trixie-backports", "%s sid"}

// The tools that the tests use to examine the kernel: Makefile's PACKAGES, and tools of an
// ordinary machine.
var rootPackages = []string{"iproute2", "bpftool", "iptables", "nftables", "ipset", "util-linux", "mount", "e2fsprogs", "xfsprogs", "btrfs-progs",
	"strace", "time", "systemd", "systemd-sysv", "dbus", "containernetworking-plugins", "kmod", "procps", "libcap2-bin", "attr"}

var emulatorPackages = map[string]string{"amd64": "qemu-system-x86", arm64: "qemu-system-arm"}

// machines holds the parts of virtual machines.
type machines struct {
	cache, logs string
	images      string // of this run
}

func isArm(kernel string) bool { return strings.HasSuffix(kernel, "-"+arm64) }

func architecture(kernel string) string {
	if isArm(kernel) {
		return arm64
	}
	return "amd64"
}

func (m *machines) kernelDir(kernel string) string { return filepath.Join(m.cache, "linux-"+kernel) }

// install installs missing parts: an existing directory is complete.
func (m *machines) install(ctx context.Context, kernels []string) error {
	if os.Geteuid() != 0 {
		return errors.New("needs root, to install a Debian")
	}
	for _, kernel := range kernels {
		arch := architecture(kernel)
		root := func(ctx context.Context, dir string) error { return installRoot(ctx, arch, dir) }
		if err := m.once(ctx, rootOf(arch), root); err != nil {
			return err
		}
		emulator := func(ctx context.Context, dir string) error {
			return debian(ctx, "amd64", emulatorRelease, dir, emulatorPackages[arch])
		}
		if err := m.once(ctx, "qemu-"+arch, emulator); err != nil {
			return err
		}
		linux := func(ctx context.Context, dir string) error { return m.installKernel(ctx, kernel, dir) }
		if err := m.once(ctx, "linux-"+kernel, linux); err != nil {
			return err
		}
	}
	return nil
}

// rootOf is the directory of an architecture's Debian.
func rootOf(arch string) string {
	if arch == arm64 {
		return "root-" + arm64
	}
	return "root"
}

func (m *machines) emulator(arch string) string { return m.path("qemu-" + arch) }

func (m *machines) path(names ...string) string {
	return filepath.Join(append([]string{m.cache}, names...)...)
}

// once makes the directory of this name in the cache atomically, unless it exists.
func (m *machines) once(ctx context.Context, name string, fill func(ctx context.Context, dir string) error) error {
	_, err := programs.Kept(ctx, os.Stdout, group, name, func(dir string) error {
		fmt.Println("installing", m.path(name))
		return fill(ctx, dir)
	})
	return err
}

const working = ".work-"

// work makes a directory of this process in the cache, and removes those of processes
// that were killed.
func (m *machines) work() (string, error) {
	entries, err := os.ReadDir(m.cache)
	if err != nil {
		return "", err
	}
	for _, entry := range entries {
		if rest, ours := strings.CutPrefix(entry.Name(), working); ours {
			pid, _, _ := strings.Cut(rest, "-")
			if _, err := os.Stat(filepath.Join("/proc", pid)); errors.Is(err, os.ErrNotExist) {
				if err := os.RemoveAll(m.path(entry.Name())); err != nil {
					return "", err
				}
			}
		}
	}
	return os.MkdirTemp(m.cache, fmt.Sprintf("%s%d-", working, os.Getpid()))
}

// command runs a program quietly, and returns its output.
func command(ctx context.Context, dir string, env []string, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", strings.Join(append([]string{name}, args...), " "), err, stderr.Bytes())
	}
	return out, nil
}

// mirror is the machine's own.
func mirror() (string, error) {
	files, err := filepath.Glob("/etc/apt/sources.list.d/*")
	found := regexp.MustCompile(`(?m)^[^#\n]*?(https?://[^ ]+/debian)/?(\s|$)`)
	for _, file := range append(files, "/etc/apt/sources.list") {
		if text, err := os.ReadFile(file); err == nil {
			if match := found.FindSubmatch(text); match != nil {
				return string(match[1]), nil
			}
		}
	}
	return "", errors.Join(errors.New("no Debian mirror in /etc/apt/sources.list.d"), err)
}

// debian installs a release into dir. Of another architecture, whose programs cannot run here,
// the packages are only unpacked.
func debian(ctx context.Context, arch, release, dir string, packages ...string) error {
	from, err := mirror()
	if err != nil {
		return err
	}
	args := []string{"--quiet", "--mode=root", "--variant=essential"}
	if arch == arm64 {
		args = []string{"--quiet", "--mode=root", "--variant=extract", "--architectures=" + arch, "--include=?essential"}
	}
	args = append(args, "--include="+strings.Join(packages, ","), "--aptopt=Acquire::Check-Valid-Until \"false\"", release, dir, from)
	if _, err := command(ctx, "", nil, "mmdebstrap", args...); err != nil || arch != arm64 {
		return err
	}
	return configure(dir)
}

// configure does what the packages' own scripts do, as far as tests need it.
func configure(dir string) (err error) {
	links := map[string]string{"usr/bin/awk": "mawk", "var/run": "/run", "var/lock": "/run/lock"}
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		links["usr/sbin/"+name] = "xtables-nft-multi"
	}
	for name, target := range links {
		path := filepath.Join(dir, name)
		err = errors.Join(err, os.RemoveAll(path), os.Symlink(target, path)) // some are empty directories
	}
	for _, name := range []string{"passwd", "group"} {
		err = errors.Join(err, copyFile(filepath.Join(dir, "usr/share/base-passwd", name+".master"), filepath.Join(dir, "etc", name), 0o644))
	}
	return err
}

func installRoot(ctx context.Context, arch, dir string) error {
	tree := filepath.Join(dir, "tree")
	if err := debian(ctx, arch, rootRelease, tree, rootPackages...); err != nil {
		return err
	}
	for _, name := range []string{"t", "lib/modules"} {
		if err := os.MkdirAll(filepath.Join(tree, name), 0o755); err != nil {
			return err
		}
	}
	if err := image(ctx, tree, filepath.Join(dir, "image"), 1500); err != nil {
		return err
	}
	return os.RemoveAll(tree)
}

// image makes a file with an ext4 of a tree.
func image(ctx context.Context, tree, file string, megabytes int) error {
	_, err := command(ctx, "", nil, "mke2fs", "-q", "-t", "ext4", "-d", tree, file, strconv.Itoa(megabytes)+"M")
	return err
}

// apt is the environment of an apt with the kernels' suites, and with its own lists and state.
func (m *machines) apt(ctx context.Context, arch string) ([]string, error) {
	final := m.path("apt-" + arch)
	env := []string{"APT_CONFIG=" + filepath.Join(final, "conf")}
	err := m.once(ctx, "apt-"+arch, func(_ context.Context, dir string) error {
		from, err := mirror()
		if err != nil {
			return err
		}
		var sources, conf strings.Builder
		for _, suite := range suites {
			fmt.Fprintf(&sources, "deb [check-valid-until=no signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] "+suite+" main\n", from)
		}
		for name, path := range map[string]string{
			"Dir::Etc::sourcelist": "sources.list", "Dir::Etc::sourceparts": "none", "Dir::Etc::preferencesparts": "none",
			"Dir::State": "state", "Dir::State::status": "status", "Dir::Cache": "cache",
		} {
			fmt.Fprintf(&conf, "%s %q;\n", name, filepath.Join(final, path))
		}
		fmt.Fprintf(&conf, "APT::Architecture %q;\nAPT::Architectures { %[1]q; };\nAPT::Sandbox::User \"root\";\nAcquire::Languages \"none\";\n", arch)
		return errors.Join(
			os.MkdirAll(filepath.Join(dir, "state/lists/partial"), 0o755), os.MkdirAll(filepath.Join(dir, "cache/archives/partial"), 0o755),
			os.WriteFile(filepath.Join(dir, "sources.list"), []byte(sources.String()), 0o644),
			os.WriteFile(filepath.Join(dir, "conf"), []byte(conf.String()), 0o644),
			os.WriteFile(filepath.Join(dir, "status"), nil, 0o644))
	})
	if err == nil {
		_, err = command(ctx, "", env, "apt-get", "update", "-qq")
	}
	return env, err
}

// fetch unpacks packages of Debian into dir. Only packages of some kernels may be
// missing.
func (m *machines) fetch(ctx context.Context, arch, dir string, packages, mayMiss []string) error {
	env, err := m.apt(ctx, arch)
	if err != nil {
		return err
	}
	archives, err := os.MkdirTemp(m.cache, ".new-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(archives)
	if _, err := command(ctx, archives, env, "apt-get", append([]string{"download", "-qq"}, packages...)...); err != nil {
		return err
	}
	for _, name := range mayMiss {
		_, _ = command(ctx, archives, env, "apt-get", "download", "-qq", name)
	}
	files, err := filepath.Glob(filepath.Join(archives, "*.deb"))
	for _, file := range files {
		if err == nil {
			_, err = command(ctx, "", nil, "dpkg-deb", "-x", file, dir)
		}
	}
	return err
}

// installKernel installs in dir the kernel, an image of its modules, the modules that it
// needs to find that image, and its version.
func (m *machines) installKernel(ctx context.Context, kernel, dir string) error {
	arch := architecture(kernel)
	env, err := m.apt(ctx, arch)
	if err != nil {
		return err
	}
	names, err := command(ctx, "", env, "apt-cache", "pkgnames", "linux-image-")
	if err != nil {
		return err
	}
	name := newestOf(strings.Fields(string(names)), strings.TrimSuffix(kernel, "-"+arm64), arch)
	if name == "" {
		return errors.New("no such kernel in Debian")
	}
	version := strings.TrimPrefix(strings.TrimPrefix(name, "linux-image-"), "unsigned-")
	tree := filepath.Join(dir, "tree")
	// From 7.3 on, the kernel and its modules are separate packages.
	if err := m.fetch(ctx, arch, tree, []string{name}, []string{"linux-binary-" + version, "linux-modules-" + version, "linux-base-" + version}); err != nil {
		return err
	}
	return errors.Join(unpackKernel(ctx, tree, dir), os.RemoveAll(tree))
}

// newestOf returns the package of the newest kernel of a series, preferably a signed one.
func newestOf(names []string, series, arch string) (found string) {
	pattern := regexp.MustCompile(`^linux-image-(?:unsigned-)?(\d+\.\d[^ ]*)-` + arch + `$`)
	var best []int
	for _, name := range names {
		match := pattern.FindStringSubmatch(name)
		if match == nil || strings.Contains(name, "-rt") || strings.Contains(name, "-cloud") || strings.Contains(name, "rc") {
			continue
		}
		version := numbers(match[1])
		if series != newest && !slices.Equal(version[:min(2, len(version))], numbers(series)) {
			continue
		}
		order := slices.Compare(version, best)
		if order > 0 || order == 0 && strings.Contains(found, "unsigned") {
			found, best = name, version
		}
	}
	return found
}

func numbers(version string) (n []int) {
	for _, digits := range regexp.MustCompile(`\d+`).FindAllString(version, -1) {
		i, _ := strconv.Atoi(digits) // only a few digits
		n = append(n, i)
	}
	return n
}

func unpackKernel(ctx context.Context, tree, dir string) error {
	modules, err := one(filepath.Join(tree, "lib/modules/*"), filepath.Join(tree, "usr/lib/modules/*"))
	if err != nil {
		return err
	}
	linux, err := one(filepath.Join(tree, "boot/vmlinuz-*"), filepath.Join(modules, "vmlinuz"))
	if err != nil {
		return err
	}
	version := filepath.Base(modules)
	root := filepath.Join(tree, "modules")
	if err := errors.Join(
		os.Rename(linux, filepath.Join(dir, "vmlinuz")),
		os.MkdirAll(filepath.Join(root, "lib/modules"), 0o755),
		os.Rename(modules, filepath.Join(root, "lib/modules", version)),
	); err != nil {
		return err
	}
	if _, err := command(ctx, "", nil, "depmod", "-b", root, version); err != nil {
		return err
	}
	if err := bootModules(ctx, filepath.Join(root, "lib/modules", version), filepath.Join(dir, "modules.cpio")); err != nil {
		return err
	}
	size, err := command(ctx, "", nil, "du", "-sm", root)
	if err != nil {
		return err
	}
	return image(ctx, filepath.Join(root, "lib/modules"), filepath.Join(dir, "modules.image"), numbers(string(size))[0]*5/4+60)
}

// one returns the only match of the first pattern that matches.
func one(patterns ...string) (string, error) {
	for _, pattern := range patterns {
		if found, _ := filepath.Glob(pattern); len(found) == 1 {
			return found[0], nil
		}
	}
	return "", fmt.Errorf("not one of %s", strings.Join(patterns, ", "))
}

// qemu is the emulator's command line up to its own arguments: a program of a Debian
// other than the machine's runs with that Debian's loader.
func (m *machines) qemu(arch string) ([]string, error) {
	root := m.emulator(arch)
	loader, err := one(filepath.Join(root, "usr/lib/*-linux-gnu*/ld-linux-*.so.*"))
	if err != nil {
		return nil, err
	}
	program := map[string]string{"amd64": "qemu-system-x86_64", arm64: "qemu-system-aarch64"}[arch]
	return []string{loader, "--library-path", filepath.Dir(loader), filepath.Join(root, "usr/bin", program),
		"-L", filepath.Join(root, "usr/share/qemu"), "-L", filepath.Join(root, "usr/share/seabios")}, nil
}
