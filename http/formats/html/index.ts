/** HTML pages: templates, layout, forms, scripts and style. */
export { renderElement } from "./element-html.ts"
export { type Control, type HtmlForm, redisplayedForm, renderButton, renderForm } from "./forms.ts"
export { type PageLink, renderPage } from "./layout.ts"
export { badge, copyField, emptyState, livePart, liveState, table, time, timeAt } from "./parts.ts"
export { liveScript, liveScriptPath, pageScript, pageTools } from "./scripts.ts"
export { stylesheet } from "./style.ts"
export { type Html, html, link, nothing } from "./template.ts"
