package config

import "log/slog"

// Log says what is logged, and how.
type Log struct {
	// Level is the least level that is logged. The default is info.
	Level slog.Level
	// Format is how a line looks. The default is text.
	Format LogFormat
}

// LogFormat is how a log line looks.
type LogFormat string

// The log formats.
const (
	LogText LogFormat = "text"
	LogJSON LogFormat = "json"
)

func readLog(v value) Log {
	log := Log{Level: slog.LevelInfo, Format: LogText}
	v.object(func(o *object) {
		var level string
		if choice(o, "level", &level, "debug", "info", "warn", "error") {
			log.Level = map[string]slog.Level{
				"debug": slog.LevelDebug, "info": slog.LevelInfo,
				"warn": slog.LevelWarn, "error": slog.LevelError,
			}[level]
		}
		choice(o, "format", &log.Format, LogText, LogJSON)
	})
	return log
}
