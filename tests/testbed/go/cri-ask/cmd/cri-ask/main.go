// The command cri-ask asks a container runtime over CRI and prints one JSON object: the judge in tests of real daemons.
//
// It stands on the upstream client library alone and shares no code with the product.
//
//	cri-ask [--socket PATH] [--wait SECONDS] [--timeout SECONDS] status|version
//	cri-ask [--socket PATH] runp NAME [HANDLER]   # RunPodSandbox, host network
//	cri-ask [--socket PATH] stopp ID | rmp ID
//
// "state" is served, unimplemented (a server answers, but has no CRI) or down (nothing answers, or an error). "api" is v1, or
// v1alpha2 for runtimes that have nothing else: both are the same on the wire, so the messages of v1 serve for it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"
)

type handler struct {
	Name     string `json:"name"`
	Features any    `json:"features,omitempty"`
}

type answer struct {
	State      string                     `json:"state"`
	API        string                     `json:"api,omitempty"`
	Error      string                     `json:"error,omitempty"`
	Code       string                     `json:"code,omitempty"`
	Version    map[string]string          `json:"version,omitempty"`
	Conditions map[string]bool            `json:"conditions,omitempty"`
	Handlers   []handler                  `json:"runtime_handlers,omitempty"`
	Info       map[string]json.RawMessage `json:"info,omitempty"`
	Sandbox    string                     `json:"sandbox,omitempty"`
}

type client struct {
	connection *grpc.ClientConn
	api        string
	timeout    time.Duration
}

// call invokes a method of RuntimeService under the API version that the client settled on.
func (c *client) call(method string, request, response any) error {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	return c.connection.Invoke(ctx, "/runtime."+c.api+".RuntimeService/"+method, request, response)
}

// version settles the API version: v1, and v1alpha2 where v1 is not implemented.
func (c *client) version(out *answer) error {
	var err error
	for _, api := range []string{"v1", "v1alpha2"} {
		c.api = api
		response := &cri.VersionResponse{}
		if err = c.call("Version", &cri.VersionRequest{}, response); err == nil {
			out.State, out.API = "served", api
			out.Version = map[string]string{
				"runtimeName": response.RuntimeName, "runtimeVersion": response.RuntimeVersion,
				"runtimeApiVersion": response.RuntimeApiVersion, "version": response.Version,
			}
			return nil
		}
		if status.Code(err) != codes.Unimplemented {
			return err
		}
	}
	return err
}

func (c *client) status(out *answer) error {
	response := &cri.StatusResponse{}
	if err := c.call("Status", &cri.StatusRequest{Verbose: true}, response); err != nil {
		return err
	}
	out.Conditions, out.Info = map[string]bool{}, map[string]json.RawMessage{}
	for _, condition := range response.GetStatus().GetConditions() {
		out.Conditions[condition.Type] = condition.Status
	}
	for key, text := range response.Info {
		raw := json.RawMessage(text)
		if !json.Valid(raw) {
			raw, _ = json.Marshal(text)
		}
		out.Info[key] = raw
	}
	for _, found := range response.RuntimeHandlers {
		entry := handler{Name: found.Name}
		if found.Features != nil {
			entry.Features = found.Features
		}
		out.Handlers = append(out.Handlers, entry)
	}
	return nil
}

func (c *client) runSandbox(out *answer, name, runtimeHandler string) error {
	response := &cri.RunPodSandboxResponse{}
	namespaces := &cri.NamespaceOption{Network: cri.NamespaceMode_NODE}
	err := c.call("RunPodSandbox", &cri.RunPodSandboxRequest{
		RuntimeHandler: runtimeHandler,
		Config: &cri.PodSandboxConfig{
			Metadata:     &cri.PodSandboxMetadata{Name: name, Namespace: "default", Uid: name, Attempt: 0},
			LogDirectory: "/tmp",
			Linux:        &cri.LinuxPodSandboxConfig{SecurityContext: &cri.LinuxSandboxSecurityContext{NamespaceOptions: namespaces}},
		},
	}, response)
	out.Sandbox = response.PodSandboxId
	return err
}

func (c *client) run(out *answer, arguments []string) error {
	if err := c.version(out); err != nil {
		return err
	}
	argument := func(n int) string {
		if n < len(arguments) {
			return arguments[n]
		}
		return ""
	}
	switch arguments[0] {
	case "version":
		return nil
	case "status":
		return c.status(out)
	case "runp":
		return c.runSandbox(out, argument(1), argument(2))
	case "stopp":
		return c.call("StopPodSandbox", &cri.StopPodSandboxRequest{PodSandboxId: argument(1)}, &cri.StopPodSandboxResponse{})
	case "rmp":
		return c.call("RemovePodSandbox", &cri.RemovePodSandboxRequest{PodSandboxId: argument(1)}, &cri.RemovePodSandboxResponse{})
	}
	return fmt.Errorf("unknown command %q", arguments[0])
}

// settled tells whether asking again cannot change the answer: a server that is still starting refuses the connection or says
// that it is not initialized yet.
func settled(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded:
		return false
	}
	return err == nil || !strings.Contains(err.Error(), "not initialized")
}

func ask(socket string, timeout time.Duration, arguments []string) (answer, error) {
	out := answer{State: "down"}
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(16<<20)))
	if err != nil {
		return out, err
	}
	defer connection.Close()
	err = (&client{connection: connection, timeout: timeout}).run(&out, arguments)
	if err != nil {
		out.Error, out.Code = status.Convert(err).Message(), status.Code(err).String()
		if out.State != "served" && status.Code(err) == codes.Unimplemented {
			out.State = "unimplemented"
		}
	}
	return out, err
}

func main() {
	socket := flag.String("socket", "/run/containerd/containerd.sock", "path of the runtime's socket")
	wait := flag.Float64("wait", 0, "seconds to wait for a server that is still starting")
	timeout := flag.Float64("timeout", 10, "seconds a call may take")
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	deadline := time.Now().Add(time.Duration(*wait * float64(time.Second)))
	out, err := ask(*socket, time.Duration(*timeout*float64(time.Second)), flag.Args())
	for !settled(err) && time.Now().Before(deadline) {
		time.Sleep(15 * time.Millisecond)
		out, err = ask(*socket, time.Duration(*timeout*float64(time.Second)), flag.Args())
	}
	if encodeErr := json.NewEncoder(os.Stdout).Encode(out); encodeErr != nil {
		fmt.Fprintln(os.Stderr, encodeErr)
		os.Exit(2)
	}
	if err != nil {
		os.Exit(1)
	}
}
