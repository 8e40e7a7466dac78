// Adds to a counter of a service with the HTTP face: `go run counter.go alice 3`.
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

// problem is an answer without a reply; Outcome says whether the actor can have changed.
type problem struct{ Detail, Outcome string }

// send gets the reply to a message by POST, or to the query of a path by GET without a message.
func send(method, path, message string) (reply int, err error) {
	client := http.Client{Timeout: 30 * time.Second}
	for attempt := 1; ; attempt++ {
		request, err := http.NewRequest(method, os.Getenv("ACTORS_URL")+path, strings.NewReader(message))
		if err != nil {
			return 0, err
		}
		request.Header.Set("Authorization", "Bearer "+os.Getenv("ACTORS_TOKEN"))
		request.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(request)
		if err != nil {
			return 0, err // The actor may have processed the message.
		}
		defer answer.Body.Close()
		if answer.StatusCode == http.StatusOK {
			err = json.NewDecoder(answer.Body).Decode(&reply)
			return reply, err
		}
		failed := problem{Outcome: "indeterminate"}
		_ = json.NewDecoder(answer.Body).Decode(&failed)
		// 503 of the face says that nothing changed. Only then a message may be repeated.
		if answer.StatusCode != 503 || failed.Outcome != "unchanged" || attempt == 5 {
			return 0, fmt.Errorf("%s, %s: %s", answer.Status, failed.Outcome, failed.Detail)
		}
		pause, _ := time.ParseDuration(answer.Header.Get("Retry-After") + "s")
		time.Sleep(pause)
	}
}

func main() {
	counter := "/actors/counter/" + url.PathEscape(os.Args[1])
	added, err := send("POST", counter, fmt.Sprintf(`{"_tag":"Add","by":%s}`, os.Args[2]))
	if err != nil {
		log.Fatal(err)
	}
	read, err := send("GET", counter+"?_tag=Read", "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("added:", added, "read:", read)
}
