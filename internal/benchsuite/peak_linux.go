package benchsuite

import (
	"bytes"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// watchPeak starts to watch how much memory a process holds and returns what
// ends it and answers with the most, in bytes. The system's own answer after
// the end would count the memory of this process too, from before the child
// became another program.
func watchPeak(cmd *exec.Cmd) (end func() float64) {
	stop, peak := make(chan struct{}), make(chan float64, 1)
	go func() {
		status := "/proc/" + strconv.Itoa(cmd.Process.Pid) + "/status"
		most := 0.0
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, highWater(status))
			select {
			case <-tick.C:
			case <-stop:
				peak <- most
				return
			}
		}
	}()
	return func() float64 {
		close(stop)
		return <-peak
	}
}

// highWater reads the most memory that a process held so far, in bytes; 0 when
// it is gone.
func highWater(status string) float64 {
	b, err := os.ReadFile(status)
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(b, []byte("VmHWM:"))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	kb, err := strconv.ParseFloat(string(bytes.TrimSpace(bytes.TrimSuffix(line, []byte("kB")))), 64)
	if err != nil {
		return 0
	}
	return kb * 1024
}
