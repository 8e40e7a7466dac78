#!/usr/bin/env node
/** `npm pack`: installs if necessary, and builds what the package holds. */
import { build, installIfStale } from "./prepare.mjs"

installIfStale()
process.exitCode = build(".") ? 0 : 1
