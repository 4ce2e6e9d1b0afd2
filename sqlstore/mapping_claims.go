package sqlstore

import (
	"context"
	"strconv"

	"github.com/postrider/postrider/relay"
)

// canClaim says whether the table has what claims of single rows need.
func (m *Mapping) canClaim() bool {
	return m.Status != "" && m.Words.Processing != "" && m.ClaimToken != "" && m.ProcessingUntil != ""
}

// claimMisfits finds columns of claims that cannot hold them.
func (m *Mapping) claimMisfits(t *theirs, table string) (list []misfit) {
	const token = len("00000000-0000-0000-0000-000000000000")
	if c := t.columns[m.ClaimToken]; c.kind == kindText && c.length > 0 && c.length < token {
		list = append(list, misfit{"column " + c.name + " of " + table + ", mapped as claim_token,", "is of type " + c.typ + " and cannot hold a UUID",
			"a column of claim tokens has room for 36 characters"})
	}
	return list
}

// rowIsClaimed is the condition that somebody has claimed a row of theirs, not told by whom and until when.
func (w *terms) rowIsClaimed() string {
	if !w.m.canClaim() {
		return "1 = 0"
	}
	return w.says(w.quote(w.m.Status), w.m.Words.Processing) + " AND " + w.filter()
}

// stateClaimed is the condition that an event e is claimed, told so that an index can serve it.
func (w *terms) stateClaimed() string {
	if !w.m.canClaim() {
		return "1 = 0"
	}
	return w.among(w.m.Words.Processing)
}

func (w *terms) setClaimed() string {
	a := assignments{w: w}
	if w.m.canClaim() {
		a.set(w.m.Status, w.constant(w.m.Words.Processing, w.column(w.m.Status)))
		a.set(w.m.ClaimToken, w.cast("postrider_token", w.column(w.m.ClaimToken)))
	}
	a.claimUntil()
	return a.String()
}

func (w *terms) setRenewed() string {
	a := assignments{w: w}
	a.claimUntil()
	return a.String()
}

func (w *terms) setReleased() string {
	a := assignments{w: w}
	if w.m.canClaim() {
		a.set(w.m.Status, w.constant(w.m.Words.Pending[0], w.column(w.m.Status)))
	}
	a.noClaim()
	return a.String()
}

func (w *terms) setClaimPublished() string {
	a := assignments{w: w}
	a.published()
	a.noClaim()
	return a.String()
}

// setClaimFailed gives the event back when it is not DEAD, or when no word says so.
func (w *terms) setClaimFailed() string {
	a := assignments{w: w}
	if status := w.column(w.m.Status); w.m.canClaim() && w.m.Words.Dead != "" {
		a.set(w.m.Status, "CASE postrider_state WHEN 'DEAD' THEN "+w.cast(w.literal(w.m.Words.Dead), status)+
			" ELSE "+w.cast(w.literal(w.m.Words.Pending[0]), status)+" END")
	} else if w.m.canClaim() {
		a.set(w.m.Status, w.constant(w.m.Words.Pending[0], status))
	}
	a.failed()
	a.noClaim()
	return a.String()
}

// claimUntil lets a claim end in so many seconds as the column postrider_lease says.
func (a *assignments) claimUntil() {
	c := a.w.column(a.w.m.ProcessingUntil)
	a.time(c.name, a.w.roundUp(a.w.later("postrider_lease"), c))
}

func (a *assignments) noClaim() {
	a.none(a.w.m.ClaimToken)
	if c := a.w.column(a.w.m.ProcessingUntil); c.nullable {
		a.set(c.name, "NULL")
	}
}

// claimTokens are the values of what the files about claims leave open.
func (w *terms) claimTokens() map[string]string {
	return map[string]string{
		"state_claimed": w.stateClaimed(), "state_busy": w.among(w.m.Words.Processing),
		"row_is_claimed": w.rowIsClaimed(), "token_of_row": w.plain(w.m.ClaimToken), "until_of_row": w.moments(w.m.ProcessingUntil),
		"set_claimed": w.setClaimed(), "set_renewed": w.setRenewed(), "set_released": w.setReleased(),
		"set_claim_published": w.setClaimPublished(), "set_claim_failed": w.setClaimFailed(),
	}
}

// theirCandidates completes the query for candidates where its parameters do not say everything. It looks for twice as many
// as are wanted, lest all it finds be locked by another claimer.
func (r *RowClaims) theirCandidates(q query, req relay.ReadRequest, limit int) query {
	req.Shards = nil // the relay knows of one, in place of all
	return q.with("{wanted}", r.theirs.Load().terms.wanted(req)).with("{look}", strconv.Itoa(2*limit))
}

// settleFailedClaims writes failed outcomes under their claims. What their table refuses stands in the side table alone.
func (r *RowClaims) settleFailedClaims(ctx context.Context, op, member string, rows []claimSettlement) (written []string, err error) {
	written, err = r.settleClaims(ctx, op, "claim_failed", rows, member)
	if r.mapping == nil || err == nil || !r.refused(ctx, err) {
		return written, err
	}
	if len(rows) == 1 {
		return r.settleClaims(ctx, op, "claim_failed_aside", rows, member)
	}
	for i := range rows {
		one, err := r.settleFailedClaims(ctx, op, member, rows[i:i+1])
		if err != nil {
			return written, err
		}
		written = append(written, one...)
	}
	return written, nil
}
