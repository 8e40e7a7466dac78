// What the tests of the Go client run: go_scenarios NAME ARGUMENT…, which prints JSON.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"

	"restante"
)

func must[A any](value A, err error) A {
	if err != nil {
		panic(err)
	}
	return value
}

// kindOf is how a program recognizes an error.
func kindOf(err error) any {
	var problem *restante.Problem
	var invalid *restante.InvalidSignature
	kinds := map[string]error{
		"NotFound": restante.ErrNotFound, "Gone": restante.ErrGone,
		"Unauthenticated": restante.ErrUnauthenticated, "UnknownCursor": restante.ErrUnknownCursor,
		"UnexpectedAnswer": restante.ErrUnexpectedAnswer, "Canceled": context.Canceled,
	}
	for name, kind := range kinds {
		if errors.Is(err, kind) {
			return name
		}
	}
	switch {
	case errors.As(err, &invalid):
		return invalid.Fault
	case errors.As(err, &problem):
		return problem.Status
	case err == nil:
		return nil
	}
	return "other: " + err.Error()
}

// watches ADDRESS TOKEN MAILBOX COUNT OPTIONS
func watches(args []string) any {
	client := must(restante.Connect(args[0], args[1]))
	count := must(strconv.Atoi(args[3]))
	options := restante.WatchOptions{}
	if err := json.Unmarshal([]byte(args[4]), &options); err != nil {
		panic(err)
	}
	lost := 0
	options.OnConnection = func(err error) {
		if err != nil {
			lost++
		} else if options.After == "now" {
			fmt.Fprintln(os.Stderr, "open")
		}
	}
	found, names, cursor := []string{}, [][]string{}, ""
	var end error
	for notification, err := range client.Watch(context.Background(), args[2], options) {
		if err != nil {
			end = err
			break
		}
		found = append(found, notification.Description)
		children := []string{}
		for _, child := range notification.Item.Children {
			children = append(children, child.Name)
		}
		names = append(names, children)
		cursor = notification.Cursor
		if len(found) == count {
			break
		}
	}
	return map[string]any{
		"found": found, "names": names, "cursor": cursor, "lost": lost, "end": kindOf(end),
	}
}

// verifies FILE, which has pushes and their secrets
func verifies(args []string) any {
	var cases []struct {
		Headers map[string]string
		Body    string
		Secrets []string
	}
	if err := json.Unmarshal(must(os.ReadFile(args[0])), &cases); err != nil {
		panic(err)
	}
	results := []any{}
	for _, one := range cases {
		header := http.Header{}
		for name, value := range one.Headers {
			header.Set(name, value)
		}
		push, err := restante.VerifyPush(header, []byte(one.Body), one.Secrets...)
		if err != nil {
			results = append(results, kindOf(err))
			continue
		}
		found := []string{}
		for _, notification := range push.Notifications {
			found = append(found, notification.Description)
		}
		results = append(results, []any{push.Mailbox, found, push.Test})
	}
	return results
}

// raises ADDRESS TOKEN
func raises(args []string) any {
	ctx := context.Background()
	client := must(restante.Connect(args[0], args[1]))
	anonymous := must(restante.Connect(args[0], ""))
	_, absent := client.ReadMailboxWithResponse(ctx, "nobody", nil)
	_, unauthenticated := anonymous.ListAccountsWithResponse(ctx, nil)
	accounts := must(client.ListAccountsWithResponse(ctx, nil))
	_, address := restante.Connect("localhost:8080", "")
	return []any{kindOf(absent), kindOf(unauthenticated), accounts.JSON200 != nil, address != nil}
}

func main() {
	scenarios := map[string]func([]string) any{
		"watches": watches, "verifies": verifies, "raises": raises,
	}
	fmt.Println(string(must(json.Marshal(scenarios[os.Args[1]](os.Args[2:])))))
}
