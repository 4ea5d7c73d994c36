// The command stand-in sleeps until it is ended, whatever its arguments. Installed under another name (kubelet, k3s, …) it gives
// /proc an executable, a name and a command line to be read; it is in no other way the program that it stands for.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	<-ended
}
