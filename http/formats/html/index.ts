/** HTML pages: templates, layout, forms, scripts and style. */
export { charts, type ChartTimes, type ChartUnit, type LineChart, share,
  valueText } from "./chart.ts"
export { renderElement } from "./element-html.ts"
export { type Control, deleteForm, type FormRank, type HtmlForm, methodControl, outdatedForm,
  redisplayedForm, renderButton, renderDocsSearch, renderForm, versionControl } from "./forms.ts"
export { icon } from "./icon.ts"
export { type PageLink, renderPage } from "./layout.ts"
export { iconsLicense, interFont, interLicense, normalizeLicense } from "./packages/index.ts"
export { addressLink, badge, cardTable, copyField, emptyState, type Heading, livePart, liveState,
  namedLink, secretsOnce, shortUri, sizeText, statusBadge, type StatusBadges, table, time, timeAgo,
  timeAt, uriName } from "./parts.ts"
export { chartsScript, chartsScriptPath, chipsScript, chipsScriptPath, iconPath, listScript,
  listScriptPath, liveScript, liveScriptPath, notifyScript, notifyScriptPath, pageScript,
  searchScript, searchScriptPath, serviceWorker } from "./scripts/index.ts"
export { type PageReader, signInForm, signInHref, signInPath, signOutPath } from "./sign-in.ts"
export { stylesheet } from "./style.ts"
export { attribute, type Html, html, link, nothing, raw } from "./template.ts"
export { typefaceName } from "./typeface.ts"
