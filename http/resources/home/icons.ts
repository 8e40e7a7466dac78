/** The icon: of pages in a browser's tab, and of installed pages and notifications. */

/** A vector picture. */
export const icon = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 16 16\">" +
  "<rect x=\"1\" y=\"3\" width=\"14\" height=\"10\" rx=\"1\" fill=\"#8a2b1a\"/>" +
  "<path d=\"M1.5 4 8 9l6.5-5\" fill=\"none\" stroke=\"#fbf9f4\" stroke-width=\"1.4\"/></svg>\n"

/** Pixels of {@link largeIcon}, in each direction. */
export const largeIconSize = 512

/**
 * A PNG without transparency, in base64: systems cut the shape that they want out of it. The
 * picture is within the circle that is always visible (Web Application Manifest, "maskable").
 */
const largeIconText = [
  "iVBORw0KGgoAAAANSUhEUgAAAgAAAAIABAMAAAAGVsnJAAAAMFBMVEWKKxqSOSmZRjehVEaoYlSwcGO3fXG/i4DGmY7O",
  "p53VtKvdwrrk0Mjs3tfz6+X7+fTkMXIqAAAGPUlEQVR42u3dT3IbRRiG8bYkWzapSrLGG/aw8AGgyheA+AQkN4AbxHsv",
  "0A0CJ0icVXaqCgdgEfbJIqydRYyjiFhUUVAB0z3Tf2a+eVvz/JZZRNZT1jfj7pbkHAAAAAAAAAAAAAAAAAAAAAAAAAAA",
  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAFCR6dnFRsz1syO75z9bbgStj80CPNpIWlk9/8ONqHOjAEvVAGub",
  "53+wkbUwCXBPN8Dbcb8CjF4D040wi3uBfeUApwYBbikHeGIQ4LZygFcGAe4oB3hDAAIQgAAEIAABCEAAAhCAAAQwDfCj",
  "7d7UJ3IB/vjM8vlPftF7Cby2DPCN4gx4YPf89ySH4Du7AD9oXgUWVs//QPQyuDaag5Ol6n3AC5sAX+neCJ1YPP9d4TvB",
  "K4sAD5VvhRdDTkCFAOu7fT/8zlL7j6EXA05AiQDXPc/B3Qv1P4evhpuAIusBp30++H4FCyLve5yDO49rWBF63t9jfyG3",
  "InTpm4PHfT30zDcB7w8a4I3vqvR7Xw/9ne+6e2fYAN77klO7Cbi+O3AA753p+34e+bH33nvoAN4r83OrCXjlhg/gW5/7",
  "0MMcnL30r0MOHsB9bTMHfRPwV6cQwLtG/33XDzsP7UUMH8C7S9P5uzcehXajBAJ4V6k7fvfGYXAdXiGAdw52enB7+jK4",
  "E6MQwLtTddnlg94P78VJBOh7Ds4bdmMlArhP+52Dvgn4k1MK0O8cPGzaiRQJ4P0l7WgOThtfYCIB3LeeH/K3bh6x+b9W",
  "CdBwoSrUcpFVCdD8Qi3RMl5kAoRvVsu03WjrBJj3cnSq9RZDJ0DT7Vq+1ptMoQB9zMH2PzOEArjPu5+Dvgn41KkG6H4O",
  "Riw1SAXY7/jo1CRi0V0qQHDhLlPMcqNWAO/mVfaRgd2YjTetAKHF+zxRWw5iAQLbN1niNp3UAux3dnQqcttRLYB/Czfn",
  "gSI3nuUCdDUHoyagYgD3ZTdz0DcBf3Y1BNjpZA4exB4/0gsQ/7M3TcDoioIBon97G8S/jhQDxM6vsIRJqhjAFR+dSriW",
  "SgYoPTqVcjclGaD06FTKdUQzQNnRqaS/qEQDlMzBtHtJ0QAlR6fSVlVUA0yy52DiuppqgPyjU4krq7IBIla0vVLX1nUD",
  "5B2dSt5d0Q2Qd3QqeX9NOEDO0an0HVbhADlzMH1vSTlA+tGpjFMW0gFS52DO/rJ0gNSjUzknrbQDTJPmYNZZO+0AaS/q",
  "rNOW4gEaT7nekHfeVj1A/IU988S1eoD4W7vMM/fyAWIvbbnvupAPEDsHc8+b6weIu73NXj6oIEDMHMx/z0kFAWIW+fKX",
  "EGsIMGudgwXvv60hQPtCf8E2QhUB2rZ6SjaS6gjQvNlXtJVYR4Dm7d6izeRKAjRtd5UdJ6gkQNMcLPsMiloChA/9FB4p",
  "qiVAcA6WHqaoJkDo6FTpscJ6Avg+Ce/6xP+vWxnAf7UrPlpcUYDmT8PMPVxeUYDYbytduG0N0PZ5kFkHq6sKsBsT4GSL",
  "A7R8JmzWmyvqCjBpnYPJbzOsK0D7HFy47Q4Q/m6E3Lca1xZgrznAg60PEPx+lNyPG6guQOgbcnI/cKK6AKHvSMp9q319",
  "AcJz8J0bR4C97iZgnQFCc/C1G0sA79Gp3I8eqzGA9zRQ6OTQVgbwHRlYuTEFmGceBtiaAP8/OnXpxhXg5tGp/A+hrTTA",
  "zaNT525sAf47B1dufAHmXUzAmgP8ew5eujEG+Hh0qujrCOoN8PEdgk/dOAP8MwdXbqwBZn8tkq+PRxvATc8urp8dufEG",
  "qPLnIQABCEAAAhCAAAQgAAEIQAACEIAABCAAAQhAAAIQgAAEIAABCEAAAhCAAAQgAAEIQAACEIAABCAAAQhAAAIQgAAE",
  "IAABCEAAAhCAAATYzgBqCEAAAhCAAAQgAAEIQAACEIAAPbmtHOCVQYBbygGeGATYVw5wahBgqhzgyCCAW+o+/7XJItw9",
  "3QBvTQIc6AZYmATQfQ3YvAL8Xycv4dwogPfr5AWsrJ7/358FKvcCOLbbjZmeXag9/eLPJgUAAAAAAAAAAAAAAAAAAAAA",
  "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAABs/QldfJQuWhRUrQAAAABJRU5ErkJggg=="
]

export const largeIcon = Buffer.from(largeIconText.join(""), "base64")
