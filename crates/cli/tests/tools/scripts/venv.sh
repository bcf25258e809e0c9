# needs: python3 / python3-venv
set -e
python3 -c 'import ensurepip, venv'
python3 -m venv --without-pip light && light/bin/python -c 'import sys; print(sys.prefix != sys.base_prefix)'
python3 -m venv full && full/bin/python -m pip --version | cut -d' ' -f1
