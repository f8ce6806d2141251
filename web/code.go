package web

import "net/http"

func (s *Server) serveCode(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }
