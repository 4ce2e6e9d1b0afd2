package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// str takes any text but the empty one. A number is taken as it is written; a
// boolean is not, since it is more likely meant for another key.
func str[T ~string](o *object, key string, dst *T) bool {
	return readString(o.field(key), dst, anyString)
}

// strAs takes what parse takes.
func strAs[T ~string](o *object, key string, dst *T, parse func(string) (T, *mistake)) bool {
	return readString(o.field(key), dst, parse)
}

// strOrEmpty takes any text.
func strOrEmpty(o *object, key string, dst *string) bool {
	text, ok := o.field(key).text()
	if ok {
		*dst = text
	}
	return ok
}

func anyString[T ~string](text string) (T, *mistake) { return T(text), nil }

func readString[T ~string](v value, dst *T, parse func(string) (T, *mistake)) bool {
	if v.present() && v.node.Kind == yaml.ScalarNode && v.node.Tag == "!!bool" {
		v.problem("must be a text, not "+v.node.Value, "if it is meant, put it in quotes")
		return false
	}
	return readValue(v, dst, parse)
}

// choice takes one of the options.
func choice[T ~string](o *object, key string, dst *T, options ...T) bool {
	return choiceOf(o.field(key), dst, options...)
}

func choiceOf[T ~string](v value, dst *T, options ...T) bool {
	return readValue(v, dst, func(text string) (T, *mistake) {
		if slices.Contains(options, T(text)) {
			return T(text), nil
		}
		words := make([]string, len(options))
		for i, option := range options {
			words[i] = string(option)
		}
		return "", &mistake{"is not known", suggest(text, words, "one of")}
	})
}

// strs takes a list of texts, or one text with commas, so that one variable
// can hold them all.
func strs(o *object, key string, dst *[]string) bool {
	v := o.field(key)
	var list []string
	isRead := v.present() && v.r.isClean(func() {
		if v.node.Kind == yaml.ScalarNode {
			list = splitCommas(v)
			return
		}
		v.items(func(item value) {
			var text string
			readString(item, &text, anyString)
			list = append(list, text)
		})
	})
	if !isRead {
		return false
	}
	if len(list) == 0 {
		v.problem("is empty", "name at least one")
		return false
	}
	*dst = list
	return true
}

func splitCommas(v value) []string {
	var text string
	if !readString(v, &text, anyString) {
		return nil
	}
	list := strings.Split(text, ",")
	for i, item := range list {
		list[i] = strings.TrimSpace(item)
	}
	if slices.Contains(list, "") {
		v.problem("has an empty element", "write a,b without a comma at an end")
	}
	return list
}

// boolean takes true or false.
func boolean(o *object, key string, dst *bool) {
	read(o, key, dst, func(text string) (bool, *mistake) {
		if text != "true" && text != "false" {
			return false, &mistake{"is neither true nor false", "write true or false"}
		}
		return text == "true", nil
	})
}

// integer takes a whole number from low to high.
func integer(o *object, key string, dst *int, low, high int) bool {
	return read(o, key, dst, func(text string) (int, *mistake) {
		n, err := strconv.Atoi(text)
		switch {
		case err != nil:
			return 0, &mistake{"is no whole number", fmt.Sprintf("write digits only, such as %d", max(low, 1))}
		case n < low || n > high:
			return 0, &mistake{"is out of range", fmt.Sprintf("write a number from %d to %d", low, high)}
		}
		return n, nil
	})
}

// duration takes a time with its unit, not shorter than low. Zero needs none.
func duration(o *object, key string, dst *time.Duration, low time.Duration) bool {
	return read(o, key, dst, func(text string) (time.Duration, *mistake) {
		return parseDuration(text, low)
	})
}

func parseDuration(text string, low time.Duration) (time.Duration, *mistake) {
	d, err := time.ParseDuration(text)
	switch {
	case strings.HasPrefix(text, "-"):
		return 0, &mistake{"is negative", fmt.Sprintf("write %v or more", low)}
	case err != nil && strings.Trim(text, "0123456789.") == "":
		return 0, &mistake{"has no unit", "write {}s, or with another of the units ms, s, m, h"}
	case err != nil:
		return 0, &mistake{"is no duration", "write a number and a unit: 250ms, 30s, 5m, 72h"}
	case d < low:
		return 0, &mistake{"is too short", fmt.Sprintf("write %v or more", low)}
	}
	return d, nil
}

// percent takes a share from 0% to 100%, as 0 to 1.
func percent(o *object, key string, dst *float64) {
	read(o, key, dst, func(text string) (float64, *mistake) {
		number, found := strings.CutSuffix(text, "%")
		n, err := strconv.ParseFloat(number, 64)
		switch {
		case err != nil || !found:
			return 0, &mistake{"is no percentage", "write a number and a percent sign: 20%"}
		case !(n >= 0 && n <= 100):
			return 0, &mistake{"is out of range", "write 0% to 100%"}
		}
		return n / 100, nil
	})
}

var sizeUnits = map[string]float64{
	"": 1, "B": 1,
	"KB": 1e3, "MB": 1e6, "GB": 1e9,
	"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30,
}

// size takes a number of bytes from low to high, with or without a unit.
func size(o *object, key string, dst *int, low, high int) {
	read(o, key, dst, func(text string) (int, *mistake) {
		split := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
		unit, known := sizeUnits[strings.ToUpper(text[len(split):])]
		n, err := strconv.ParseFloat(strings.TrimSpace(split), 64)
		switch {
		case err != nil || !known:
			return 0, &mistake{"is no size", "write a number and a unit: 512KiB, 32MB, 32MiB, 1GiB"}
		case !(n*unit >= float64(low) && n*unit <= float64(high)):
			return 0, &mistake{"is out of range", fmt.Sprintf("write a size from %dB to %dMiB", low, high>>20)}
		}
		return int(n * unit), nil
	})
}
