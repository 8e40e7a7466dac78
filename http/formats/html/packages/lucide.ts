/**
 * Icons of Lucide, of lucide-static 1.62.0, as `deploy/generate/icons.mjs` makes them.
 * License: ISC and MIT, in {@link iconsLicense}.
 */

/** The shapes of each icon on a grid of 24 by 24: strokes without fill. */
export const iconShapes = {
  bridge: [
    "<rect x=\"2\" y=\"6\" width=\"20\" height=\"8\" rx=\"1\"/><path d=\"M17 14v7\"/><p",
    "ath d=\"M7 14v7\"/><path d=\"M17 3v3\"/><path d=\"M7 3v3\"/><path d=\"M10 14 ",
    "2.3 6.3\"/><path d=\"m14 6 7.7 7.7\"/><path d=\"m8 6 8 8\"/>"
  ].join(""),
  cabinets: [
    "<rect width=\"20\" height=\"5\" x=\"2\" y=\"3\" rx=\"1\"/><path d=\"M4 8v11a2 2 0",
    " 0 0 2 2h12a2 2 0 0 0 2-2V8\"/><path d=\"M10 12h4\"/>"
  ].join(""),
  cluster: [
    "<rect x=\"16\" y=\"16\" width=\"6\" height=\"6\" rx=\"1\"/><rect x=\"2\" y=\"16\" wi",
    "dth=\"6\" height=\"6\" rx=\"1\"/><rect x=\"9\" y=\"2\" width=\"6\" height=\"6\" rx=\"",
    "1\"/><path d=\"M5 16v-3a1 1 0 0 1 1-1h12a1 1 0 0 1 1 1v3\"/><path d=\"M12 ",
    "12V8\"/>"
  ].join(""),
  content: [
    "<path d=\"M6 22a2 2 0 0 1-2-2V4a2 2 0 0 1 2-2h8a2.4 2.4 0 0 1 1.704.706",
    "l3.588 3.588A2.4 2.4 0 0 1 20 8v12a2 2 0 0 1-2 2z\"/><path d=\"M14 2v5a1",
    " 1 0 0 0 1 1h5\"/><path d=\"M10 9H8\"/><path d=\"M16 13H8\"/><path d=\"M16 1",
    "7H8\"/>"
  ].join(""),
  copy: [
    "<rect width=\"14\" height=\"14\" x=\"8\" y=\"8\" rx=\"2\" ry=\"2\"/><path d=\"M4 16",
    "c-1.1 0-2-.9-2-2V4c0-1.1.9-2 2-2h10c1.1 0 2 .9 2 2\"/>"
  ].join(""),
  customers: [
    "<path d=\"M16 21v-2a4 4 0 0 0-4-4H6a4 4 0 0 0-4 4v2\"/><path d=\"M16 3.12",
    "8a4 4 0 0 1 0 7.744\"/><path d=\"M22 21v-2a4 4 0 0 0-3-3.87\"/><circle cx",
    "=\"9\" cy=\"7\" r=\"4\"/>"
  ].join(""),
  dark: [
    "<path d=\"M20.985 12.486a9 9 0 1 1-9.473-9.472c.405-.022.617.46.402.803",
    "a6 6 0 0 0 8.268 8.268c.344-.215.825-.004.803.401\"/>"
  ].join(""),
  docs: [
    "<path d=\"M12 5v16\"/><path d=\"M20.001 19A2 2 0 0022 17V5a2 2 0 00-1.999",
    "-2L16 3.002A5 5 0 0012 5a5 5 0 00-4-2H4a2 2 0 00-2 2v12a2 2 0 001.999 ",
    "2H8a5 5 0 014 2 5 5 0 014-2z\"/>"
  ].join(""),
  light: [
    "<circle cx=\"12\" cy=\"12\" r=\"4\"/><path d=\"M12 2v2\"/><path d=\"M12 20v2\"/>",
    "<path d=\"m4.93 4.93 1.41 1.41\"/><path d=\"m17.66 17.66 1.41 1.41\"/><pat",
    "h d=\"M2 12h2\"/><path d=\"M20 12h2\"/><path d=\"m6.34 17.66-1.41 1.41\"/><p",
    "ath d=\"m19.07 4.93-1.41 1.41\"/>"
  ].join(""),
  mailboxes: [
    "<polyline points=\"22 12 16 12 14 15 10 15 8 12 2 12\"/><path d=\"M5.45 5",
    ".11 2 12v6a2 2 0 0 0 2 2h16a2 2 0 0 0 2-2v-6l-3.45-6.89A2 2 0 0 0 16.7",
    "6 4H7.24a2 2 0 0 0-1.79 1.11z\"/>"
  ].join(""),
  outgoing: [
    "<path d=\"M14.536 21.686a.5.5 0 0 0 .937-.024l6.5-19a.496.496 0 0 0-.63",
    "5-.635l-19 6.5a.5.5 0 0 0-.024.937l7.93 3.18a2 2 0 0 1 1.112 1.11z\"/><",
    "path d=\"m21.854 2.147-10.94 10.939\"/>"
  ].join(""),
  queries: [
    "<path d=\"M2 5h20\"/><path d=\"M6 12h12\"/><path d=\"M9 19h6\"/>"
  ].join(""),
  quotes: [
    "<path d=\"M16 7h6v6\"/><path d=\"m22 7-8.5 8.5-5-5L2 17\"/>"
  ].join(""),
  remove: [
    "<path d=\"M10 11v6\"/><path d=\"M14 11v6\"/><path d=\"M19 6v14a2 2 0 0 1-2 ",
    "2H7a2 2 0 0 1-2-2V6\"/><path d=\"M3 6h18\"/><path d=\"M8 6V4a2 2 0 0 1 2-2",
    "h4a2 2 0 0 1 2 2v2\"/>"
  ].join(""),
  search: [
    "<path d=\"m21 21-4.34-4.34\"/><circle cx=\"11\" cy=\"11\" r=\"8\"/>"
  ].join(""),
  "sign-in": [
    "<path d=\"m10 17 5-5-5-5\"/><path d=\"M15 12H3\"/><path d=\"M15 3h4a2 2 0 0",
    " 1 2 2v14a2 2 0 0 1-2 2h-4\"/>"
  ].join(""),
  "sign-out": [
    "<path d=\"m16 17 5-5-5-5\"/><path d=\"M21 12H9\"/><path d=\"M9 21H5a2 2 0 0",
    " 1-2-2V5a2 2 0 0 1 2-2h4\"/>"
  ].join("")
} as const

/** The license of the icons, which goes with every copy of them. */
export const iconsLicense = [
  "ISC License",
  "",
  "Copyright (c) 2026 Lucide Icons and Contributors",
  "",
  "Permission to use, copy, modify, and/or distribute this software for any",
  "purpose with or without fee is hereby granted, provided that the above",
  "copyright notice and this permission notice appear in all copies.",
  "",
  "THE SOFTWARE IS PROVIDED \"AS IS\" AND THE AUTHOR DISCLAIMS ALL WARRANTIES",
  "WITH REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF",
  "MERCHANTABILITY AND FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR",
  "ANY SPECIAL, DIRECT, INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES",
  "WHATSOEVER RESULTING FROM LOSS OF USE, DATA OR PROFITS, WHETHER IN AN",
  "ACTION OF CONTRACT, NEGLIGENCE OR OTHER TORTIOUS ACTION, ARISING OUT OF",
  "OR IN CONNECTION WITH THE USE OR PERFORMANCE OF THIS SOFTWARE.",
  "",
  "---",
  "",
  "The following Lucide icons are derived from the Feather project:",
  "",
  "airplay, alert-circle, alert-octagon, alert-triangle, aperture, arrow-down-circle,",
  "arrow-down-left, arrow-down-right, arrow-down, arrow-left-circle, arrow-left,",
  "arrow-right-circle, arrow-right, arrow-up-circle, arrow-up-left, arrow-up-right, arrow-up,",
  "at-sign, calendar, cast, check, chevron-down, chevron-left, chevron-right, chevron-up,",
  "chevrons-down, chevrons-left, chevrons-right, chevrons-up, circle, clipboard, clock, code,",
  "columns, command, compass, corner-down-left, corner-down-right, corner-left-down,",
  "corner-left-up, corner-right-down, corner-right-up, corner-up-left, corner-up-right,",
  "crosshair, database, divide-circle, divide-square, dollar-sign, download, external-link,",
  "feather, frown, hash, headphones, help-circle, info, italic, key, layout, life-buoy, link-2,",
  "link, loader, lock, log-in, log-out, maximize, meh, minimize, minimize-2, minus-circle,",
  "minus-square, minus, monitor, moon, more-horizontal, more-vertical, move, music,",
  "navigation-2, navigation, octagon, pause-circle, percent, plus-circle, plus-square, plus,",
  "power, radio, rss, search, server, share, shopping-bag, sidebar, smartphone, smile, square,",
  "table-2, tablet, target, terminal, trash-2, trash, triangle, tv, type, upload, x-circle,",
  "x-octagon, x-square, x, zoom-in,",
  "zoom-out",
  "",
  "The MIT License (MIT) (for the icons listed above)",
  "",
  "Copyright (c) 2013-present Cole Bemis",
  "",
  "Permission is hereby granted, free of charge, to any person obtaining a copy",
  "of this software and associated documentation files (the \"Software\"), to deal",
  "in the Software without restriction, including without limitation the rights",
  "to use, copy, modify, merge, publish, distribute, sublicense, and/or sell",
  "copies of the Software, and to permit persons to whom the Software is",
  "furnished to do so, subject to the following conditions:",
  "",
  "The above copyright notice and this permission notice shall be included in all",
  "copies or substantial portions of the Software.",
  "",
  "THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR",
  "IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,",
  "FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE",
  "AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER",
  "LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,",
  "OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE",
  "SOFTWARE.",
  ""
].join("\n")
