/**
 * The base of the stylesheet, of modern-normalize 3.0.1, as
 * `deploy/generate/normalize.mjs` makes it.
 * License: MIT, in {@link normalizeLicense}.
 */

/** Rules that make the defaults of browsers the same, below a line that names their license. */
export const normalizeRules = [
  "/*! modern-normalize v3.0.1 | MIT License | ",
  "https://github.com/sindresorhus/modern-normalize */",
  "*,::before,::after{box-sizing:border-box}",
  "html{font-family:system-ui,'Segoe UI',Roboto,Helvetica,Arial,sans-serif,'Apple Color ",
  "Emoji','Segoe UI Emoji';line-height:1.15;-webkit-text-size-adjust:100%;tab-size:4}",
  "body{margin:0}",
  "b,strong{font-weight:bolder}",
  "code,kbd,samp,pre{font-family:ui-monospace,SFMono-Regular,Consolas,'Liberation Mono',",
  "Menlo,monospace;font-size:1em}",
  "small{font-size:80%}",
  "sub,sup{font-size:75%;line-height:0;position:relative;vertical-align:baseline}",
  "sub{bottom:-0.25em}",
  "sup{top:-0.5em}",
  "table{border-color:currentcolor}",
  "button,input,optgroup,select,textarea{font-family:inherit;font-size:100%;",
  "line-height:1.15;margin:0}",
  "button,[type='button'],[type='reset'],[type='submit']{-webkit-appearance:button}",
  "legend{padding:0}",
  "progress{vertical-align:baseline}",
  "::-webkit-inner-spin-button,::-webkit-outer-spin-button{height:auto}",
  "[type='search']{-webkit-appearance:textfield;outline-offset:-2px}",
  "::-webkit-search-decoration{-webkit-appearance:none}",
  "::-webkit-file-upload-button{-webkit-appearance:button;font:inherit}",
  "summary{display:list-item}",
  "\n"
].join("")

/** The license of these rules, which goes with every copy of them. */
export const normalizeLicense = [
  "MIT License",
  "",
  "Copyright (c) Sindre Sorhus <sindresorhus@gmail.com> (https://sindresorhus.com)",
  "Copyright (c) Jonathan Neal",
  "Copyright (c) Nicolas Gallagher",
  "",
  "Permission is hereby granted, free of charge, to any person obtaining a copy of this",
  "software and associated documentation files (the \"Software\"), to deal in the Software",
  "without restriction, including without limitation the rights to use, copy, modify, merge,",
  "publish, distribute, sublicense, and/or sell copies of the Software, and to permit persons",
  "to whom the Software is furnished to do so, subject to the following",
  "conditions:",
  "",
  "The above copyright notice and this permission notice shall be included in all copies or",
  "substantial portions of the",
  "Software.",
  "",
  "THE SOFTWARE IS PROVIDED \"AS IS\", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED,",
  "INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR",
  "PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE",
  "FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR",
  "OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER",
  "DEALINGS IN THE",
  "SOFTWARE.",
  ""
].join("\n")
