package viewer

import (
	"embed"
	"io/fs"
)

//go:embed files
var files embed.FS

// Files are the pages as they are served: index.html at "/", resource.html at
// "/r/{project}/{resource}", join.html at "/join", and what lies below assets at
// "/assets/".
func Files() fs.FS {
	sub, err := fs.Sub(files, "files")
	if err != nil { // it is a constant name of what is embedded
		panic(err)
	}
	return sub
}
