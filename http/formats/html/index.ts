/** HTML pages: templates, layout, forms, scripts and style. */
export { renderElement } from "./element-html.ts"
export { button, type Control, form, type HtmlForm, refilled } from "./forms.ts"
export { type Link, page } from "./layout.ts"
export { badge, copied, emptyState, livePart, liveState, table, time, timeAt } from "./parts.ts"
export { liveScript, liveScriptPath, pageScript, pageTools } from "./scripts.ts"
export { stylesheet } from "./style.ts"
export { type Html, html, link, nothing } from "./template.ts"
