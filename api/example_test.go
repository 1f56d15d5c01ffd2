package api_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/api"
)

// Serve a runtime on loopback. The key is compared here as simply as an example
// may; a server keeps hashes and compares in constant time.
func ExampleNew() {
	var runtime reins.Runtime // such as a *host.Host that was started
	handler, err := api.New(api.Options{
		Runtime: runtime,
		Authenticate: func(r *http.Request) (api.Identity, error) {
			if r.Header.Get("Authorization") == "Bearer my-key" {
				return api.Identity{Name: "me", Admin: true}, nil
			}
			return api.Identity{}, errors.New("no such key")
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer handler.Close()
	log.Fatal(http.ListenAndServe("127.0.0.1:7777", handler))
}

// Drive a browser that is elsewhere, as if it were here.
func ExampleClient() {
	ctx := context.Background()
	client, err := api.NewClient(api.ClientOptions{URL: "http://127.0.0.1:7777", Key: "my-key"})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	var runtime reins.Runtime = client
	session := &reins.Session{Harness: "example", Native: "1"}
	reg, err := runtime.Register(ctx, reins.Registration{
		Key:        reins.ResourceKey{Project: "shop"},
		Attachment: reins.Attachment{AuthorityID: "me", Revision: 1, Session: session},
	})
	if err != nil {
		log.Fatal(err)
	}
	binding := reins.Binding{
		Project: "shop", Resource: reg.Key.ID, AuthorityID: "me", Revision: 1, Session: session,
		Actor: "agent", Role: reins.RoleAgent, Peer: "example", Source: reins.SourceAPI,
	}
	capability, err := runtime.Issue(ctx, binding, 0)
	if err != nil {
		log.Fatal(err)
	}
	lease, err := runtime.Acquire(ctx, capability.Token, binding)
	if err != nil {
		log.Fatal(err)
	}
	result, err := lease.Do(ctx, reins.Call{Action: reins.Navigate{URL: "https://example.com"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Navigation.Title)
}
