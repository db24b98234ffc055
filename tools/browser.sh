#!/bin/sh
# Finds or installs the browser that the tests marked "browser" drive. Says in one line how that went; never fails, as
# those tests skip themselves without it.
for name in chromium chromedriver; do
    command -v "$name" >/dev/null || missing=yes
done
if [ -z "${missing:-}" ]; then
    echo "browser: $(command -v chromium)"
elif [ "$(id -u)" != 0 ]; then
    echo "browser: none, tests marked browser are skipped; as root: apt-get install chromium chromium-driver"
elif { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends chromium \
    chromium-driver; } >/dev/null 2>&1; then
    echo "browser: installed $(command -v chromium)"
else
    echo "browser: none, tests marked browser are skipped; apt-get could not install chromium and chromium-driver"
fi
