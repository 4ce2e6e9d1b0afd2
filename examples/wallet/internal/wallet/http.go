package wallet

import (
	"encoding/json"
	"errors"
	"log"
	"net/http"
)

// Handler serves the service over HTTP:
//
//	PUT  /wallets/{id}         {"balance": 100}
//	GET  /wallets/{id}
//	POST /wallets/{id}/debit   {"amount": 5, "reference": "r-1"}
//	POST /wallets/{id}/credit  {"amount": 5, "reference": "r-2"}
//	POST /orders               {"id": "o-1", "wallet": "w-1", "amount": 5}
//	GET  /orders/{id}
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /wallets/{id}", s.serveCreate)
	mux.HandleFunc("GET /wallets/{id}", s.serveWallet)
	mux.HandleFunc("POST /wallets/{id}/debit", func(w http.ResponseWriter, r *http.Request) { s.serveEntry(w, r, -1) })
	mux.HandleFunc("POST /wallets/{id}/credit", func(w http.ResponseWriter, r *http.Request) { s.serveEntry(w, r, 1) })
	mux.HandleFunc("POST /orders", s.servePlaceOrder)
	mux.HandleFunc("GET /orders/{id}", s.serveOrder)
	return mux
}

func (s *Service) serveCreate(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Balance int64 `json:"balance"`
	}
	if !decode(w, r, &body) {
		return
	}
	if body.Balance < 0 {
		answer(w, http.StatusBadRequest, problem("balance must not be negative"))
		return
	}
	if err := s.Create(r.Context(), r.PathValue("id"), body.Balance); err != nil {
		fail(w, err)
		return
	}
	s.serveWallet(w, r)
}

func (s *Service) serveWallet(w http.ResponseWriter, r *http.Request) {
	found, err := s.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, found)
}

func (s *Service) serveEntry(w http.ResponseWriter, r *http.Request, sign int64) {
	var body struct {
		Amount    int64  `json:"amount"`
		Reference string `json:"reference"`
	}
	if !decode(w, r, &body) {
		return
	}
	if body.Amount <= 0 || body.Reference == "" {
		answer(w, http.StatusBadRequest, problem("amount must be above 0, and reference must be set"))
		return
	}
	if _, err := s.Post(r.Context(), r.PathValue("id"), Entry{Amount: sign * body.Amount, Reference: body.Reference}); err != nil {
		fail(w, err)
		return
	}
	s.serveWallet(w, r)
}

func (s *Service) servePlaceOrder(w http.ResponseWriter, r *http.Request) {
	var order Order
	if !decode(w, r, &order) {
		return
	}
	if order.ID == "" || order.Amount <= 0 {
		answer(w, http.StatusBadRequest, problem("id must be set, and amount must be above 0"))
		return
	}
	if err := s.PlaceOrder(r.Context(), order); err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusCreated, order)
}

func (s *Service) serveOrder(w http.ResponseWriter, r *http.Request) {
	order, err := s.GetOrder(r.Context(), r.PathValue("id"))
	if err != nil {
		fail(w, err)
		return
	}
	answer(w, http.StatusOK, order)
}

func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	const limit = 64 << 10
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, limit))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		answer(w, http.StatusBadRequest, problem(err.Error()))
		return false
	}
	return true
}

func fail(w http.ResponseWriter, err error) {
	status := http.StatusInternalServerError
	switch {
	case errors.Is(err, ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, ErrInsufficientFunds):
		status = http.StatusUnprocessableEntity
	case errors.Is(err, ErrReferenceTaken):
		status = http.StatusConflict
	default:
		log.Print(err)
		err = errors.New("the request failed; the log of the service tells why")
	}
	answer(w, status, problem(err.Error()))
}

func problem(text string) map[string]string { return map[string]string{"error": text} }

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a client that has gone needs no answer
}
