package driver

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/reins-browser/reins"
)

// applications are pages around programs that people use, from packages of npm.
var applications = map[string]string{
	"swagger": `<link rel=stylesheet href=/node_modules/swagger-ui-dist/swagger-ui.css><div id=ui></div><script src=/node_modules/swagger-ui-dist/swagger-ui-bundle.js></script>
<script>const op = (s) => ({ summary: s, tags: ['pets'], parameters: [{ name: 'limit', in: 'query', description: 'How many', schema: { type: 'integer' } },
  { name: 'kind', in: 'query', required: true, schema: { type: 'string', enum: ['cat', 'dog'] } }], responses: { 200: { description: 'Done' } } });
SwaggerUIBundle({ dom_id: '#ui', docExpansion: 'full', tryItOutEnabled: true, spec: { openapi: '3.0.0', info: { title: 'Pets', version: '1' },
  paths: { '/pets': { get: op('List pets'), post: op('Add a pet') }, '/pets/{id}': { delete: op('Remove a pet') } },
  components: { schemas: { Pet: { type: 'object', properties: { name: { type: 'string' } } } } } } });
</script>`,
	"ag-grid": `<div id=grid style="height:400px"></div><script src=/node_modules/ag-grid-community/dist/ag-grid-community.min.js></script>
<script>agGrid.createGrid(document.getElementById('grid'), { rowSelection: { mode: 'multiRow' }, pagination: true,
  columnDefs: [{ field: 'name', filter: true, floatingFilter: true }, { field: 'price', editable: true }, { field: 'sold', cellDataType: 'boolean' }],
  rowData: Array.from({ length: 60 }, (_, i) => ({ name: 'Item ' + i, price: i * 3, sold: i % 2 === 0 })) });
</script>`,
	"tabulator": `<link rel=stylesheet href=/node_modules/tabulator-tables/dist/css/tabulator.min.css><div id=grid></div><script src=/node_modules/tabulator-tables/dist/js/tabulator.min.js></script>
<script>new Tabulator('#grid', { height: 300, pagination: true, paginationSize: 20, layout: 'fitColumns', data: Array.from({ length: 60 }, (_, i) => ({ id: i, name: 'Item ' + i, price: i * 3 })),
  columns: [{ formatter: 'rowSelection', titleFormatter: 'rowSelection' }, { title: 'Name', field: 'name', editor: 'input', headerFilter: true }, { title: 'Price', field: 'price' }] });
</script>`,
	"quill": `<link rel=stylesheet href=/node_modules/quill/dist/quill.snow.css><div id=ed><h1>Title</h1><p>Some <b>bold</b> text.</p><ul><li>one</li></ul></div><script src=/node_modules/quill/dist/quill.js></script>
<script>new Quill('#ed', { theme: 'snow', modules: { toolbar: [[{ header: [1, 2, false] }], ['bold', 'italic', 'link'], [{ list: 'ordered' }, { list: 'bullet' }], [{ color: [] }]] } });</script>`,
	"codemirror": `<link rel=stylesheet href=/node_modules/codemirror/lib/codemirror.css><textarea id=code>function f() {
  return 1;
}</textarea><script src=/node_modules/codemirror/lib/codemirror.js></script><script src=/node_modules/codemirror/mode/javascript/javascript.js></script>
<script>CodeMirror.fromTextArea(document.getElementById('code'), { lineNumbers: true, mode: 'javascript' });</script>`,
	"tinymce": `<textarea id=ed>&lt;p&gt;Hello &lt;b&gt;there&lt;/b&gt;&lt;/p&gt;</textarea><script src=/node_modules/tinymce/tinymce.min.js></script>
<script>tinymce.init({ selector: '#ed', license_key: 'gpl', promotion: false, plugins: 'lists link table code' });</script>`,
}

// TestApplications holds snapshots of real applications against the browser's
// tree (SNAP-1). REINS_APPS is a folder that scripts/oracle has prepared;
// without it there is nothing to compare with, and the test says so.
func TestApplications(t *testing.T) {
	root := os.Getenv("REINS_APPS")
	if root == "" {
		t.Log("nothing compared: REINS_APPS names no folder that scripts/oracle prepared")
		return
	}
	b := newBrowser(t, reins.EngineShell)
	mux := http.NewServeMux()
	mux.Handle("/node_modules/", http.FileServer(http.Dir(root)))
	for name, html := range applications {
		mux.HandleFunc("/"+name, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			fmt.Fprintf(w, "<!doctype html><html lang=en><title>%s</title><h1>%s</h1>%s", name, name, html)
		})
	}
	s := serve(t, mux)
	var all tally
	for name := range applications {
		b.act(t, reins.Navigate{URL: s.URL + "/" + name, Wait: "load"})
		b.act(t, reins.Snapshot{}) // waits for what the page still loads
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		l := b.look(ctx, t)
		cancel()
		got := l.compare()
		if got.acting < 5 && name != "codemirror" {
			t.Errorf("%s has only %d things to act on: it did not start", name, got.acting)
		}
		for i, d := range got.differences {
			got.differences[i] = name + ".html: " + d
		}
		t.Logf("%s: %v", name, got)
		all.add(got)
		for _, problem := range l.unreachable() {
			t.Errorf("%s: %s", name, problem)
		}
	}
	report(t, "applications with the browser's tree", all)
}

// unreachable lists what can be acted on in the tree but has no ref.
func (l looked) unreachable() []string {
	var out []string
	for i, n := range l.tree {
		if o := l.told[i]; o != nil && actsOn(axText(n.Role)) && o.entry == nil && !strings.Contains(o.Tag, "summary") {
			out = append(out, fmt.Sprintf("%s %q has no ref", axText(n.Role), axText(n.Name)))
		}
	}
	return out
}
