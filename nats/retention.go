package nats

import (
	"context"
	"fmt"
	"time"
)

// Retention is how long the streams of the subjects keep events, the longest of them; 0 when one has no bound in time. A
// stream that is bounded by its size may keep them for less. It returns within about ten seconds when nothing answers.
func (s *Sink) Retention(ctx context.Context, subjects []string) (longest time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for _, subject := range subjects {
		name, err := s.js.StreamNameBySubject(ctx, subject)
		if err != nil {
			return 0, fmt.Errorf("nats: stream of subject %s: %w", subject, err)
		}
		stream, err := s.js.Stream(ctx, name)
		if err != nil {
			return 0, fmt.Errorf("nats: stream %s: %w", name, err)
		}
		age := stream.CachedInfo().Config.MaxAge
		if age == 0 {
			return 0, nil
		}
		longest = max(longest, age)
	}
	return longest, nil
}
