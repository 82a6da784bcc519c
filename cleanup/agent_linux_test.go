// SPDX-License-Identifier: Apache-2.0
// Copyright 2026 The Slipway Authors

package cleanup_test

import (
	"bufio"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/slipway-dev/slipway/bootstrap/bootstraptest"
	"github.com/slipway-dev/slipway/cleanup"
	"github.com/slipway-dev/slipway/internal/code"
	"github.com/slipway-dev/slipway/internal/testns"
)

// agentNode is a node with Cilium's state, and with its agent's program in $AGENT.
type agentNode struct {
	*bootstraptest.Node
	t   *testing.T
	env []string
}

const pidPath = "/var/run/cilium/cilium.pid"

// writesPid does what Cilium's agent does with its pid file (pkg/pidfile and
// daemon/cmd/daemon_main.go of v1.18.3): it writes its pid, with mode 0660 less the umask, and
// takes no lock.
const writesPid = `umask 026; echo $$ > ` + pidPath + `; echo ready; read end`

// inPod starts a command as pid 1 of a new pid namespace, in a new mount namespace.
const inPod = `exec unshare --pid --fork --kill-child --mount --mount-proc `

func newAgentNode(t *testing.T) agentNode {
	t.Helper()
	n := agentNode{Node: bootstraptest.NewNode(t), t: t, env: append(os.Environ(), "SAYS="+writesPid)}
	dir := t.TempDir()
	sh, err := os.ReadFile("/bin/sh")
	require.NoError(t, err)
	for variable, name := range map[string]string{"AGENT": "cilium-agent", "OTHER": "cilium-dbg"} {
		program := filepath.Join(dir, name)
		executable(t, program, sh)
		n.env = append(n.env, variable+"="+program)
	}
	for dir := dir; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) {
		require.NoError(t, os.Chmod(dir, 0o755)) // a user executes files in it
	}
	n.start("mkdir -p /var/run/cilium/state; echo ready")()
	return n
}

// start starts a script and waits until it reports ready; end stops it.
func (n agentNode) start(script string) (end func()) {
	n.t.Helper()
	cmd := n.Command("sh", "-euc", script)
	cmd.Env, cmd.Stderr = n.env, os.Stderr
	stdin, err := cmd.StdinPipe()
	require.NoError(n.t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(n.t, err)
	require.NoError(n.t, cmd.Start())
	said, err := bufio.NewReader(stdout).ReadString('\n')
	require.NoError(n.t, err)
	require.Equal(n.t, "ready\n", said)
	return func() {
		require.NoError(n.t, stdin.Close())
		_ = cmd.Wait() // its standard input has ended
	}
}

// cleanUp removes Cilium's state directory, and nothing else of the node.
func (n agentNode) cleanUp() error {
	own := cleanup.Cilium()
	own = cleanup.Ownership{Agent: own.Agent, StateDirs: own.StateDirs, PidFiles: own.PidFiles, Executables: own.Executables, Sockets: own.Sockets}
	return n.Do(n.t.Context(), cleanup.Leftovers{Ownership: own, Scope: "all-state"}.Apply)
}

func (n agentNode) requireRefused(says string) {
	n.t.Helper()
	err := n.cleanUp()
	require.ErrorIs(n.t, err, cleanup.ErrAgentAlive)
	require.Equal(n.t, "cleanup.agent-alive", code.Of(err))
	require.Regexp(n.t, says, err.Error())
	n.start("test -d /var/run/cilium/state && echo ready")()
}

func (n agentNode) requireRemoved() {
	n.t.Helper()
	require.NoError(n.t, n.cleanUp())
	n.start("test ! -e /var/run/cilium && echo ready")()
}

func TestCLN7_TheProcessThatThePidFileNames(t *testing.T) {
	for name, script := range map[string]string{
		"in a pod":           inPod + `$AGENT -c "$SAYS"`,
		"on the host":        `exec $AGENT -c "$SAYS"`,
		"frozen":             `exec $AGENT -c "$(echo "$SAYS" | sed 's/read end/kill -STOP $$/')"`,
		"under a debugger":   `ln $AGENT $AGENT-bin; ` + inPod + `$AGENT-bin -c "$SAYS"`,
		"upgraded meanwhile": inPod + `$AGENT -c "rm $AGENT; $SAYS"`,
		"/var/run is another link": inPod + `sh -euc 'mkdir /opt/r; mount --rbind / /opt/r; mount --bind /run /opt/r/mnt
			mount -t tmpfs none /opt/r/var; ln -s /mnt /opt/r/var/run; exec chroot /opt/r $AGENT -c "$SAYS"'`,
	} {
		t.Run(name, func(t *testing.T) {
			n := newAgentNode(t)
			end := n.start(script)
			n.requireRefused(`process \d+ \(cilium-agent.*\) runs, and is process \d+ that ` + pidPath + ` names: stop it first`)
			if name != "frozen" {
				end()
				n.requireRemoved() // its pid file is stale now
			}
		})
	}
}

func TestCLN7_ProcessesThatThePidFileDoesNotName(t *testing.T) {
	for name, script := range map[string]string{
		"a stale file that names the node's pid 1": `echo 1 > ` + pidPath + `; echo ready`,
		"another program has the number":           inPod + `$OTHER -c "$SAYS"`,
		"an init container of the new pod":         `echo 1 > ` + pidPath + `; ` + inPod + `$OTHER -c "echo ready; read end"`,
		"another number":                           `echo 4194303 > ` + pidPath + `; exec $AGENT -c "echo ready; read end"`,
		"an agent of another node's files":         `echo 1 > ` + pidPath + `; ` + inPod + `sh -c 'mount -t tmpfs none /run/cilium; exec $AGENT -c "$SAYS"'`,
		"a file without a number":                  `echo agent > ` + pidPath + `; exec $AGENT -c "echo ready; read end"`,
	} {
		t.Run(name, func(t *testing.T) {
			n := newAgentNode(t)
			n.start(script)
			n.requireRemoved()
		})
	}
}

// An agent without a pid file is alive while its program runs in the node's network namespace,
// on the host or in a pod; in another, it is the agent of a node in a container. Each preset of
// an agent that keeps none says how its program is called.
func TestCLN7_CLN12_APresetsAgentIsAliveWhileItRuns(t *testing.T) {
	n := newAgentNode(t)
	for _, preset := range []string{"kube-proxy", "ip-masq-agent", "calico", "aws-leftovers"} {
		own := exampleOwnership(t, preset)
		n.env = append(n.env, "PROGRAM=/opt/"+own.Executables[0], "WAITS=echo ready; read end")
		n.start(`cp $AGENT $PROGRAM; chmod a+rx /opt $PROGRAM; echo ready`)()
		for script, want := range map[string]error{
			`exec $PROGRAM -c "$WAITS"`:                                                    cleanup.ErrAgentAlive,
			inPod + `$PROGRAM -c "$WAITS"`:                                                 cleanup.ErrAgentAlive,
			`exec unshare --net $PROGRAM -c "$WAITS"`:                                      nil, // another node's
			`exec setpriv --reuid 65534 --regid 65534 --clear-groups $PROGRAM -c "$WAITS"`: nil, // a user's
			`exec $OTHER -c "$WAITS" $PROGRAM`:                                             nil,
		} {
			end := n.start(script)
			err := n.Do(t.Context(), func(ctx context.Context) error { return own.AgentAlive(ctx, nil) })
			require.ErrorIs(t, err, want, "%s: %s", preset, script)
			if want != nil {
				require.Regexp(t, `the agent is running: process \d+ \(.*\) runs: stop it first`, err.Error(), "%s: %s", preset, script)
			}
			end()
		}
	}
}

// An unprivileged user cannot block a cleanup with a process of the right name and number.
func TestSEC7_AUsersProcessIsNoAgent(t *testing.T) {
	for name, script := range map[string]string{
		"of the agent's name":        `exec setpriv --reuid 65534 --regid 65534 --clear-groups $AGENT -c "echo \$\$; read end"`,
		"set-user-id":                `cp $AGENT $AGENT-bin; chmod u+s $AGENT-bin; exec setpriv --ruid 65534 --regid 65534 --clear-groups $AGENT-bin -pc "echo \$\$; read end"`,
		"set-user-id and all root's": `chmod u+s $AGENT; exec $AGENT -c "echo \$\$; read end"`,
	} {
		t.Run(name, func(t *testing.T) {
			n := newAgentNode(t)
			cmd := n.Command("sh", "-euc", script)
			cmd.Env, cmd.Stderr = n.env, os.Stderr
			_, err := cmd.StdinPipe()
			require.NoError(t, err)
			stdout, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			pid, err := bufio.NewReader(stdout).ReadString('\n')
			require.NoError(t, err)
			n.start(`echo ` + strings.TrimSpace(pid) + ` > ` + pidPath + `; echo ready`)()
			n.requireRemoved()
		})
	}
}

func TestCLN7_ALockOnThePidFile(t *testing.T) {
	const locked, by = pidPath + ` is locked: stop it first`, pidPath + ` is locked by process \d+ \(sh|sleep|flock\)`
	for name, c := range map[string]struct{ script, says string }{
		"flock":                               {`umask 077; exec flock ` + pidPath + ` sh -c "echo ready; read end"`, locked},
		"its locker is dead":                  {`umask 077; exec 9>` + pidPath + `; flock -n 9; echo ready; read end`, locked},
		"flock, others may read":              {`umask 022; exec flock ` + pidPath + ` sh -c "echo ready; read end"`, by},
		"its locker is dead, others may read": {`umask 022; exec 9>` + pidPath + `; flock -n 9; echo ready; read end`, by},
		"in a pod, others may read":           {inPod + `sh -c "umask 022; exec 9>` + pidPath + `; flock -n 9; echo ready; read end"`, by},
	} {
		t.Run(name, func(t *testing.T) {
			n := newAgentNode(t)
			end := n.start(c.script)
			n.requireRefused(c.says)
			end()
			n.requireRemoved()
		})
	}
}

func TestCLN7_ALockOfFcntl(t *testing.T) {
	n := newAgentNode(t)
	var f *os.File
	require.NoError(t, n.Do(t.Context(), func(context.Context) (err error) {
		if f, err = os.OpenFile(pidPath, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return err
		}
		return unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	}))
	n.requireRefused(pidPath + " is locked: stop it first")
	require.NoError(t, f.Close())
	n.requireRemoved()
}

// Any user who may read a pid file can lock it, also before ending, and blocks no cleanup
// by that.
func TestSEC7_AStrangersLockIsNoAgent(t *testing.T) {
	const stranger = `umask 022; echo 1 > ` + pidPath + `; exec setpriv --reuid 65534 --regid 65534 --clear-groups `
	for name, script := range map[string]string{
		"flock":              stranger + `flock ` + pidPath + ` sh -c "echo ready; read end"`,
		"its locker is dead": stranger + `sh -c "exec 9<` + pidPath + `; flock -n 9; echo ready; read end"`,
		"handed to a set-user-id program": `cp $AGENT $AGENT-bin; chmod u+s $AGENT-bin; ` +
			stranger + `sh -c "exec 9<` + pidPath + `; flock -n 9; exec $AGENT-bin -pc \"echo ready; read end\""`,
	} {
		t.Run(name, func(t *testing.T) {
			n := newAgentNode(t)
			n.start(script)
			n.requireRemoved()
		})
	}
}

const sockPath = "/var/run/cilium/cilium.sock"

// listen makes a socket on the node, with a queue of one, until the test ends.
func (n agentNode) listen(typ int) *os.File {
	n.t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, typ|unix.SOCK_CLOEXEC, 0)
	require.NoError(n.t, err)
	f := os.NewFile(uintptr(fd), "socket") // a second Close closes no other test's file
	n.t.Cleanup(func() { f.Close() })
	require.NoError(n.t, n.Do(n.t.Context(), func(context.Context) error {
		err := unix.Bind(fd, &unix.SockaddrUnix{Name: sockPath})
		if err == nil && typ != unix.SOCK_DGRAM {
			err = unix.Listen(fd, 0)
		}
		return err
	}))
	return f
}

// fill fills the queue of a listening socket.
func (n agentNode) fill() {
	n.t.Helper()
	for {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		require.NoError(n.t, err)
		n.t.Cleanup(func() { _ = unix.Close(fd) })
		err = n.Do(n.t.Context(), func(context.Context) error { return unix.Connect(fd, &unix.SockaddrUnix{Name: sockPath}) })
		if err != nil {
			require.ErrorIs(n.t, err, unix.EAGAIN)
			return
		}
	}
}

func TestCLN7_SEC7_ASocketThatTakesConnections(t *testing.T) {
	const listens = "a process listens at " + sockPath + ": stop it first"
	for name, c := range map[string]struct {
		make func(agentNode)
		says string // empty: no agent
	}{
		"listening":         {func(n agentNode) { n.listen(unix.SOCK_STREAM) }, listens},
		"its queue is full": {func(n agentNode) { n.listen(unix.SOCK_STREAM); n.fill() }, listens},
		"stale":             {func(n agentNode) { require.NoError(n.t, n.listen(unix.SOCK_STREAM).Close()) }, ""},
		"no socket":         {func(n agentNode) { n.start("echo > " + sockPath + "; echo ready")() }, ""},
		"a user's":          {func(n agentNode) { n.listen(unix.SOCK_STREAM); n.start("chown 65534 " + sockPath + "; echo ready")() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			n := newAgentNode(t)
			if c.make(n); c.says != "" {
				n.requireRefused(c.says)
			} else {
				n.requireRemoved()
			}
		})
	}
	t.Run("of another kind", func(t *testing.T) {
		n := newAgentNode(t)
		n.listen(unix.SOCK_DGRAM)
		err := n.cleanUp()
		require.ErrorIs(t, err, unix.EPROTOTYPE, "liveness is unknown")
		require.NotErrorIs(t, err, cleanup.ErrAgentAlive)
		require.ErrorContains(t, err, sockPath)
		n.start("test -d /var/run/cilium/state && echo ready")()
	})
}

// An agent may run as another user than root, if only that user can have written its pid
// file.
func TestSEC7_AnAgentOfThePidFilesOwner(t *testing.T) {
	const start = `umask 022; echo > ` + pidPath + `; chown 65534 ` + pidPath + `; exec setpriv --reuid 65534 --regid 65534 --clear-groups $AGENT -c "$SAYS"`
	t.Run("in root's directory", func(t *testing.T) {
		n := newAgentNode(t)
		n.start(start)
		n.requireRefused(" runs, and is process ")
	})
	t.Run("in everybody's directory", func(t *testing.T) {
		n := newAgentNode(t)
		n.start("chmod 777 /var/run/cilium; " + start)
		n.requireRemoved()
	})
}

// A user's cleanup believes root and that user, whoever may write to the pid file's directory.
func TestCLN7_AUsersCleanup(t *testing.T) {
	const says = `umask 022; echo $$ > ` + pidPath + `; echo ready; read end`
	for name, c := range map[string]struct {
		by   string
		want error
	}{
		"root's agent":     {``, fs.ErrPermission}, // whose program a user cannot see
		"the user's agent": {`setpriv --reuid 65534 --regid 65534 --clear-groups `, cleanup.ErrAgentAlive},
	} {
		t.Run(name, func(t *testing.T) {
			n := newAgentNode(t)
			n.env = append(n.env, "SAYS="+says)
			n.start("chown -R 65534:65534 /var/run/cilium; chmod 777 /var/run/cilium; echo ready")()
			n.start("exec " + c.by + `$AGENT -c "$SAYS"`)
			err := n.Do(t.Context(), func(ctx context.Context) error {
				for _, call := range []uintptr{unix.SYS_SETRESGID, unix.SYS_SETRESUID} { // of this thread alone, which ends
					if _, _, failed := unix.RawSyscall(call, 65534, 65534, 65534); failed != 0 {
						return failed
					}
				}
				own := cleanup.Ownership{Agent: "cilium", StateDirs: cleanup.Cilium().StateDirs, PidFiles: []string{pidPath}, Executables: cleanup.Cilium().Executables}
				return cleanup.Leftovers{Ownership: own, Scope: "all-state"}.Apply(ctx)
			})
			require.ErrorIs(t, err, c.want)
			n.start("test -d /var/run/cilium/state && echo ready")()
		})
	}
}

// What an agent has on the node can be looked at while it runs, and be removed if that is
// said.
func TestCLN7_WhileAlive(t *testing.T) {
	n := newAgentNode(t)
	n.listen(unix.SOCK_STREAM)
	own := cleanup.Cilium()
	l := cleanup.Leftovers{Ownership: cleanup.Ownership{Agent: own.Agent, StateDirs: own.StateDirs, Sockets: own.Sockets}, Scope: "all-state"}
	require.NoError(t, n.Do(t.Context(), func(ctx context.Context) error {
		changes, err := l.Check(ctx)
		require.Len(t, changes, 1)
		return err
	}))
	n.requireRefused("a process listens")
	l.WhileAlive = true
	require.NoError(t, n.Do(t.Context(), l.Apply))
	n.start("test ! -e /var/run/cilium && echo ready")()
}

// A FIFO that another process holds open without writing does not block the check.
func TestSEC5_APidFileThatIsAFIFO(t *testing.T) {
	testns.Root(t)
	dir := t.TempDir()
	files(t, dir, "cilium/x")
	c := stateOnly(filepath.Join(dir, "cilium"))
	fifo := filepath.Join(dir, "cilium", "cilium.pid")
	c.Ownership.PidFiles = []string{fifo}
	require.NoError(t, unix.Mkfifo(fifo, 0o644))
	writer, err := os.OpenFile(fifo, os.O_RDWR, 0)
	require.NoError(t, err)
	applied := make(chan error, 1)
	go func() { applied <- c.Apply(context.Background()) }()
	select {
	case err = <-applied:
	case <-time.After(20 * time.Second):
		t.Error("it waits for the FIFO's writer")
	}
	require.NoError(t, writer.Close())
	require.ErrorContains(t, err, fifo+": it is a FIFO, not a regular file")
	require.FileExists(t, filepath.Join(dir, "cilium", "x"))
}
