/** HTML pages: templates, layout, forms, scripts and style. */
export { chipsScript, chipsScriptPath } from "./chips-script.ts"
export { renderElement } from "./element-html.ts"
export { type Control, deleteForm, type HtmlForm, methodControl, redisplayedForm, renderButton,
  renderForm } from "./forms.ts"
export { type PageLink, renderPage } from "./layout.ts"
export { listScript, listScriptPath } from "./list-script.ts"
export { badge, copyField, emptyState, type Heading, livePart, liveState, secretsOnce, statusBadge,
  type StatusBadges, table, time, timeAgo, timeAt, uriName } from "./parts.ts"
export { liveScript, liveScriptPath, pageScript } from "./scripts.ts"
export { type PageReader, signInForm, signInHref, signInPath, signOutPath } from "./sign-in.ts"
export { stylesheet } from "./style.ts"
export { attribute, type Html, html, link, nothing } from "./template.ts"
