package driver

import (
	"bytes"
	"context"

	protoio "github.com/chromedp/cdproto/io"
	"github.com/chromedp/cdproto/page"

	"github.com/reins-browser/reins"
	"github.com/reins-browser/reins/internal/cdp"
)

const (
	paperBytes = 64 << 20 // of one PDF
	paperChunk = 1 << 20
)

// pdf prints a tab's page. The bytes come in pieces: a large PDF would not fit
// one message.
func (b *browser) pdf(ctx context.Context, x *action, a reins.PDF) error {
	guarded, release := x.tab.guard(ctx)
	defer release()
	s := x.tab.pageSession()
	got, err := cdp.Call(guarded, s, page.PrintToPDF, page.PrintToPDFParams{
		Landscape: &a.Landscape, PrintBackground: new(true), DisplayHeaderFooter: new(false),
		PreferCSSPageSize: new(true), GenerateTaggedPDF: new(len(x.cmd.Redact) == 0), TransferMode: page.PrintToPDFTransferModeReturnAsStream,
	})
	if err != nil {
		if fault, ok := cdp.IsProtocol(err); ok {
			return reins.Errorf(reins.CodeToolFailed, "the browser could not print the page (%.100q); try a screenshot", fault.Message).Because(err)
		}
		return evalError(x.tab, err)
	}
	defer s.Send(protoio.Close.Method, protoio.CloseParams{Handle: got.Stream})
	data, err := readStream(guarded, s, got.Stream)
	if err != nil {
		return err
	}
	if len(data) == 0 {
		return reins.Errorf(reins.CodeToolFailed, "the browser returned an empty PDF; try a screenshot")
	}
	if len(x.cmd.Redact) > 0 {
		blankTitle(data)
	}
	x.reply.Paper = &Paper{Data: data}
	return nil
}

// blankTitle overwrites the title that the browser puts into a PDF, since it
// may hold a secret. Like what a picture shows, what is printed stays.
func blankTitle(data []byte) {
	_, rest, found := bytes.Cut(data, []byte("/Title "))
	if !found || len(rest) == 0 {
		return
	}
	switch rest[0] {
	case '(':
		for i := 1; i < len(rest) && rest[i] != ')'; i++ {
			if rest[i] == '\\' && i+1 < len(rest) {
				rest[i] = ' '
				i++
			}
			rest[i] = ' '
		}
	case '<':
		for i := 1; i < len(rest) && rest[i] != '>'; i++ {
			rest[i] = '0'
		}
	}
}

func readStream(ctx context.Context, s *cdp.Session, handle protoio.StreamHandle) ([]byte, error) {
	var data []byte
	for {
		part, err := cdp.Call(ctx, s, protoio.Read, protoio.ReadParams{Handle: handle, Size: paperChunk})
		if err != nil {
			return nil, err
		}
		if data = append(data, part.Data...); len(data) > paperBytes {
			return nil, reins.Errorf(reins.CodeToolFailed, "the PDF has more than %d bytes; print a smaller page", paperBytes)
		}
		if part.EOF {
			return data, nil
		}
	}
}
