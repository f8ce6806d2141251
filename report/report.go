package report

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
)

// Formats are what --format takes where there is a report to write.
var Formats = []string{"text", "json", "csv"}

// A report is what a command prints. As JSON it is written as its fields say.
type Report interface {
	Text() string      // for people, in lines of about 80 columns
	Table() [][]string // for CSV, the header first
}

// Write writes it in one of reportFormats.
func Write(w io.Writer, format string, r Report) error {
	switch format {
	case "json":
		return WriteJSON(w, r)
	case "csv":
		return csv.NewWriter(w).WriteAll(r.Table())
	}
	_, err := io.WriteString(w, r.Text())
	return err
}

func WriteJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// The fields of CSV rows; what there is nothing of is empty.

func Float(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func FloatOr(f *float64) string {
	if f == nil {
		return ""
	}
	return Float(*f)
}

func Whole(n uint64) string { return strconv.FormatUint(n, 10) }
