package web

import "net/http"

func (s *Server) servePprof(w http.ResponseWriter, r *http.Request, path string) { http.NotFound(w, r) }
