package host

import (
	"errors"
	"io"
	"os"

	"github.com/reins-browser/reins"
)

// inspect looks into the cell there is (VIEW-6). It only reads, in the parent, and
// asks nothing of what is in the cell.
func (op *operation) inspect() (*reins.Result, error) {
	out := &reins.Inspection{Processes: []reins.CellProcess{}, Connections: []reins.CellConnection{}, Files: []reins.CellFile{}}
	var inc *incarnation
	op.r.update(func(s *state) {
		if op.r.incarnationLocked() != 0 && !s.inc.ending {
			inc = s.inc
			inc.saves.Add(1) // its folders stay meanwhile
		}
	})
	if inc == nil {
		return &reins.Result{Inspection: out}, nil
	}
	defer inc.saves.Done()
	out.Incarnation = inc.number
	processes, err := inc.cell.Processes()
	if err != nil {
		if gone := op.check(inc.ctx); gone != nil {
			return nil, gone // the cell is ending
		}
		return nil, reins.Errorf(reins.CodeToolFailed, "the processes of the cell could not be read").Because(err)
	}
	files, err := downloads(inc.room.Downloads())
	if err != nil {
		return nil, reins.Errorf(reins.CodeToolFailed, "the download folder could not be read").Because(err)
	}
	out.Processes = most(out, processes)
	out.Connections = most(out, inc.door.Connections())
	out.Files = most(out, files)
	return &reins.Result{Inspection: out}, nil
}

// most is a list cut at the bound; what is left out is counted.
func most[T any](of *reins.Inspection, list []T) []T {
	if n := len(list) - reins.MaxInspected; n > 0 {
		of.Left += n
		return list[:reins.MaxInspected]
	}
	return list
}

// downloads are the files in a folder. The browser writes there: names are bounded,
// and only what is a file itself is told.
func downloads(folder *os.File) ([]reins.CellFile, error) {
	root, err := os.OpenRoot(folder.Name())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir, err := root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(4 * reins.MaxInspected)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	out := []reins.CellFile{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		out = append(out, reins.CellFile{Name: bounded(e.Name(), reins.MaxPageString), Size: info.Size(), Modified: info.ModTime()})
	}
	return out, nil
}
