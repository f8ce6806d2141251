package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"strconv"
)

// reportFormats are what --format takes where there is a report to write.
var reportFormats = []string{"text", "json", "csv"}

// A report is what a command prints. As JSON it is written as its fields say.
type report interface {
	text() string     // for people, in lines of about 80 columns
	rows() [][]string // for CSV, the header first
}

// writeReport writes it in one of reportFormats.
func writeReport(w io.Writer, format string, r report) error {
	switch format {
	case "json":
		return writeJSON(w, r)
	case "csv":
		return csv.NewWriter(w).WriteAll(r.rows())
	}
	_, err := io.WriteString(w, r.text())
	return err
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// The fields of CSV rows; what there is nothing of is empty.

func number(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }

func numberOr(f *float64) string {
	if f == nil {
		return ""
	}
	return number(*f)
}

func whole(n uint64) string { return strconv.FormatUint(n, 10) }
